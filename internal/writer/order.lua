-- Applies one order to a board, once.
-- KEYS: board, count of its orders, this order.
-- ARGV: op, member, number (what incr adds or set sets), time of the order in
-- ms, life of a new board in ms (0: until it is deleted).
-- Answers "+" and a record when the order is applied now, "=" and the record of
-- then when it was applied before, "!" when the score would not be finite.
-- A record is what the update is made of: seq, op, delta, score, time, member.
local seen = redis.call('GET', KEYS[3])
if seen then
  return '=' .. seen
end

-- What can fail, fails here or at INCR, before anything is changed.
local op, member, number = ARGV[1], ARGV[2], ARGV[3]
local old = redis.call('ZSCORE', KEYS[1], member)
if op == 'incr' then
  local sum = (old or 0) + number
  if sum ~= sum or sum == math.huge or sum == -math.huge then
    return '!'
  end
end

-- The count decides how long the board, the count and its orders live. A board
-- that was there before it was counted keeps the life it has.
local life = redis.call('PTTL', KEYS[2])
local counted = life ~= -2
if not counted then
  life = redis.call('PTTL', KEYS[1])
  if life == -2 then
    life = ARGV[5] == '0' and -1 or tonumber(ARGV[5])
  end
end
if life == 0 then
  life = 1 -- its last millisecond; 0 would be for ever
end

local seq = redis.call('INCR', KEYS[2])
if life > 0 and not counted then
  redis.call('PEXPIRE', KEYS[2], life)
end

local score, delta = '0', '0'
if op == 'incr' then
  score, delta = redis.call('ZINCRBY', KEYS[1], number, member), number
elseif op == 'set' then
  redis.call('ZADD', KEYS[1], number, member)
  score = number
else
  redis.call('ZREM', KEYS[1], member)
end
if life > 0 and not old and op ~= 'delete' and redis.call('ZCARD', KEYS[1]) == 1 then
  redis.call('PEXPIRE', KEYS[1], life)
end

local record = string.format('%.0f', seq) .. ' ' .. op .. ' ' .. delta .. ' ' .. score .. ' ' .. ARGV[4] .. ' ' .. member
if life > 0 then
  redis.call('SET', KEYS[3], record, 'PX', life)
else
  redis.call('SET', KEYS[3], record)
end
return '+' .. record
