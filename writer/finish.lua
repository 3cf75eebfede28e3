-- Ends the adoption of a board whose members a writer has added up.
-- KEYS: board, its meta, the adopter's lease.
-- ARGV: run of the adoption, value of the lease, members, sum, the server's master_replid when it began.
-- Returns 1, or 0 if the board, the run, the lease or the server's history is another by now.
local call = redis.call
local meta = call('GET', KEYS[2])
if not meta or META_UNREADABLE then
  return 0
end
local flags, run = select(2, struct.unpack('>BBI8', meta))
if flags % 32 < 16 or string.format('%.0f', run) ~= ARGV[1] or call('GET', KEYS[3]) ~= ARGV[2]
  or call('ZCARD', KEYS[1]) ~= tonumber(ARGV[3])
  or not string.find(call('INFO', 'replication'), 'master_replid:' .. ARGV[5] .. '\r', 1, true) then
  return 0
end
call('SETRANGE', KEYS[2], 1, struct.pack('>B', flags - flags % 64 + flags % 16))
call('SETRANGE', KEYS[2], 18, struct.pack('>I8I8', tonumber(ARGV[4]), tonumber(ARGV[3])))
call('DEL', KEYS[3])
return 1
