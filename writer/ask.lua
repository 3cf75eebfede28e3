-- Asks what the ledger has of boards that a damaged master does not have, or has from an earlier history.
-- KEYS: the hash of positions; the set of boards that are asked for; the hash of answers. ARGV: life of the first; boards.
-- Returns "gone" if it has another life, "whole" if the master is not damaged (any more), else for each board "?" (the
-- ledger has not answered in this era), "go" or "ended".
local call = redis.call
if call('HGET', KEYS[1], 'life') ~= ARGV[1] then
  return 'gone'
elseif call('HEXISTS', KEYS[1], 'damaged') == 0 then
  return 'whole'
end
local era = string.match(call('INFO', 'replication'), 'master_replid:(' .. string.rep('%x', 16) .. ')')
local answers = {}
for i = 2, #ARGV do
  local answer, its = string.match(call('HGET', KEYS[3], ARGV[i]) or '', '^(%S+) (%x+)$')
  if its ~= era then
    answer = '?'
    call('SADD', KEYS[2], ARGV[i])
  end
  answers[i - 1] = answer
end
return answers
