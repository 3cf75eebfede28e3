-- Marks a rolling board as primed once it has all of its primes. They are known until then, and no longer: a primed board
-- takes no prime.
-- KEYS: board, its meta, the hashes of its primes. ARGV: how many primes it has to have, the eras of all masters.
-- Returns "ok", also if it was marked before; "s" if the server's era is none of these; or what is wrong: "gone",
-- "m" if the meta can't be read, "closed", "w" while the board is adopted or something else has changed it, "part" if it lacks increments of
-- before its birth, or the number of primes that it has.
-- Layout: wire/meta.go.
local call = redis.call
local era = string.match(call('INFO', 'replication'), 'master_replid:(' .. string.rep('%x', 16) .. ')')
if not string.find(ARGV[2], era, 1, true) then
  return 's'
end
local meta = call('GET', KEYS[2])
if not meta then
  return 'gone'
elseif META_UNREADABLE then
  return 'm'
end
local flags, members, primes = meta:byte(2), (struct.unpack('>I8', meta, 27)), 0
if flags % 128 >= 64 then
  return 'ok'
elseif flags % 16 >= 2 then
  return 'closed'
elseif flags % 64 >= 16 or call('ZCARD', KEYS[1]) ~= members then
  return 'w'
end
for i = 3, #KEYS do
  if call('HGET', KEYS[i], '') ~= 'whole' then
    return 'part'
  end
  primes = primes + call('HLEN', KEYS[i]) - 1
end
if primes ~= tonumber(ARGV[1]) then
  return string.format('%.0f', primes)
end
call('SETRANGE', KEYS[2], 1, string.char(flags + 64))
call('UNLINK', unpack(KEYS, 3))
return 'ok'
