-- Answers for a board of a damaged master, or ends the damage.
-- KEYS: hash of positions, set of boards that are asked for, hash of answers. ARGV: life of the first, era; and a board and
-- the answer, '' and the number of boards left, or nothing: all boards are whole. Returns 1, 0 if the master has another
-- history by now, or 2 if commands are still read again that may be of boards which do not come back.
local call = redis.call
if call('HGET', KEYS[1], 'life') ~= ARGV[1] or call('HEXISTS', KEYS[1], 'damaged') == 0
  or not string.find(call('INFO', 'replication'), 'master_replid:' .. ARGV[2], 1, true) then
  return 0
end
if #ARGV == 2 then
  local healed = 0
  for _, value in ipairs(call('HVALS', KEYS[1])) do
    if string.match(value, '^%S+ %d+ (%x+)$') == ARGV[2] then
      healed = healed + 1
    end
  end
  if healed < tonumber(string.match(call('HGET', KEYS[1], 'damaged'), '%d+$')) then
    return 2
  end
  call('HDEL', KEYS[1], 'damaged')
  call('DEL', KEYS[2], KEYS[3])
else
  call('HSET', KEYS[3], ARGV[3], ARGV[4] .. ' ' .. ARGV[2])
  call('SREM', KEYS[2], ARGV[3])
end
return 1
