-- The script before boards had a checksum, which BenchmarkScript compares apply.lua with.
-- Applies one command to a board, once per order id.
-- KEYS: board, its seq, the order id's record.
-- ARGV: op, member, number (what incr adds or set sets), time of the command in
-- ms, life of a new board in ms (0: no expiry).
-- Returns "+" and a record if the command is applied now, "=" and the earlier
-- record if its order id was applied before, "!" if the score would not be finite.
-- A record holds the fields of the update: seq, op, delta, score, time, member.
local applied = redis.call('GET', KEYS[3])
if applied then
  return '=' .. applied
end

-- Everything that can fail does so here or at INCR, before any change.
local op, member, number = ARGV[1], ARGV[2], ARGV[3]
local old = redis.call('ZSCORE', KEYS[1], member)
if op == 'incr' then
  local sum = (old or 0) + number
  if sum ~= sum or sum == math.huge or sum == -math.huge then
    return '!'
  end
end

-- Board, seq and order records expire together, as the seq does. A board that is
-- older than its seq keeps its own expiry.
local life = redis.call('PTTL', KEYS[2])
local has_seq = life ~= -2
if not has_seq then
  life = redis.call('PTTL', KEYS[1])
  if life == -2 then
    life = ARGV[5] == '0' and -1 or tonumber(ARGV[5])
  end
end
if life == 0 then
  life = 1 -- the last millisecond; 0 would mean no expiry
end

local seq = redis.call('INCR', KEYS[2])
if life > 0 and not has_seq then
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
