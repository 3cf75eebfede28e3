-- A run of rows, and a member with its surroundings, with the board's members and meta,
-- all of one instant.
-- KEYS: board [, meta]. ARGV: ZREVRANGE or ZRANGE, first index, number of rows, ZREVRANK
-- or ZRANK, member ('': nobody), neighbours on each side (-1: none), and the command
-- with the bound that find the nearest better score ('': not wanted).
local rows = {}
local count = tonumber(ARGV[3])
if count > 0 then
  rows = redis.call(ARGV[1], KEYS[1], ARGV[2], ARGV[2] + count - 1, 'WITHSCORES')
end
local rank = ARGV[5] ~= '' and redis.call(ARGV[4], KEYS[1], ARGV[5])
local score, first, neighbours, better = false, 0, {}, {}
if rank then
  score = redis.call('ZSCORE', KEYS[1], ARGV[5])
  local around = tonumber(ARGV[6])
  if around >= 0 then
    first = math.max(0, rank - around)
    neighbours = redis.call(ARGV[1], KEYS[1], first, rank + around, 'WITHSCORES')
  end
  if ARGV[7] ~= '' then
    better = redis.call(ARGV[7], KEYS[1], '(' .. score, ARGV[8], 'WITHSCORES', 'LIMIT', 0, 1)
  end
end
return {rows, rank, score, first, neighbours, better, redis.call('ZCARD', KEYS[1]), KEYS[2] and redis.call('GET', KEYS[2]) or false}
