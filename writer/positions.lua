-- Reads or writes how far a master has come in the command topic.
-- KEYS: the hash of positions: a partition to "<topic id> <next offset> <era, or ->", which is the latest era in
-- which all that was lost before is applied and published again; and "life" to the name that the hash
-- got at random when it was made.
-- ARGV: the master's era; a life; and to write, in fives: partition, topic id, next offset, "1" if it is healed in
-- this era, "1" if the offset that is there is beyond the topic's end. Else the higher offset stays.
-- Or, to mark a damaged master: "damaged", and "<time in ms> <number of partitions>".
-- Returns "s" if the master has another era; of a write "gone" if the hash has another life, or "ok"; else
-- all fields of the hash, which is made with the life if there is none.
local call, hash, era, life = redis.call, KEYS[1], ARGV[1], ARGV[2]
if not string.find(call('INFO', 'replication'), 'master_replid:' .. era, 1, true) then
  return 's'
end
local its = call('HGET', hash, 'life')
if #ARGV == 2 then
  if not its then
    call('HSET', hash, 'life', life)
  end
  return call('HGETALL', hash)
elseif its ~= life then
  return 'gone'
elseif #ARGV == 4 then
  call('HSETNX', hash, ARGV[3], ARGV[4])
  return 'ok'
end
for i = 3, #ARGV, 5 do
  local partition, topic, next, heal, reset = unpack(ARGV, i, i + 4)
  local other, there, healed = string.match(call('HGET', hash, partition) or '', '^(%S+) (%d+) (%S+)$')
  if other == topic and reset ~= '1' and tonumber(there) > tonumber(next) then
    next = there
  end
  if heal == '1' then
    healed = era
  end
  call('HSET', hash, partition, topic .. ' ' .. next .. ' ' .. (healed or '-'))
end
return 'ok'
