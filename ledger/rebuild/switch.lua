-- Puts the temporary keys in the place of a board's, and its new meta with them.
-- KEYS: meta, lease, then pairs: a key of the board, its temporary key; the board's sorted
-- set first.
-- ARGV: value of the lease, run that the rebuild has given the board, new meta, of which the
-- present one's version, life, primes, end, expiry and what version 2 has stay, members, fields of all temporary hashes,
-- master_replid of the server of a durable board when its writers began to wait, era of a board that was lost.
-- Returns 1, or a reason: "s" if that is another by now.
local call = redis.call
local meta = call('GET', KEYS[1])
if call('GET', KEYS[2]) ~= ARGV[1] or not meta or META_UNREADABLE or string.format('%.0f', (struct.unpack('>I8', meta, 3))) ~= ARGV[2] then
  return 'lease'
end
if ARGV[6] ~= '' and not string.find(call('INFO', 'replication'), 'master_replid:' .. ARGV[6] .. '\r', 1, true) then
  return 's'
end
local flags, expires, fields = meta:byte(2), string.format('%.0f', (struct.unpack('>I8', meta, 43))), 0
for i = 6, #KEYS, 2 do
  fields = fields + call('HLEN', KEYS[i])
end
if call('ZCARD', KEYS[4]) ~= tonumber(ARGV[4]) or fields ~= tonumber(ARGV[5]) then
  return 'keys'
end
for i = 3, #KEYS, 2 do
  call('UNLINK', KEYS[i])
  if call('EXISTS', KEYS[i + 1]) == 1 then
    call('RENAME', KEYS[i + 1], KEYS[i])
    if expires == '0' then
      call('PERSIST', KEYS[i])
    else
      call('PEXPIREAT', KEYS[i], expires)
    end
  end
end
local version, rest = meta:byte(), meta:sub(73)
if ARGV[7] ~= '' then
  version, rest = 2, ARGV[7] .. (rest ~= '' and rest:sub(17) or string.rep('\0', 28))
end
call('SET', KEYS[1], struct.pack('>BB', version, flags % 128 - flags % 64 + flags % 16 + (ARGV[3]:byte(2) >= 128 and 128 or 0)) .. ARGV[3]:sub(3, 34) .. meta:sub(35, 50) .. ARGV[3]:sub(51, 72) .. rest)
if expires ~= '0' then
  call('PEXPIREAT', KEYS[1], expires)
end
call('DEL', KEYS[2])
return 1
