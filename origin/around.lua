-- A member's rank and neighbours with the board's members and meta, of one
-- instant.
-- KEYS: board [, meta]. ARGV: ZREVRANK or ZRANK, ZREVRANGE or ZRANGE, member,
-- neighbours on each side.
local rank = redis.call(ARGV[1], KEYS[1], ARGV[3])
local start, rows = 0, {}
if rank then
  start = math.max(0, rank - ARGV[4])
  rows = redis.call(ARGV[2], KEYS[1], start, rank + ARGV[4], 'WITHSCORES')
end
return {rank, start, rows, redis.call('ZCARD', KEYS[1]), KEYS[2] and redis.call('GET', KEYS[2]) or false}
