-- A run of rows with the board's members and meta, of one instant.
-- KEYS: board [, meta]. ARGV: ZREVRANGE or ZRANGE, first index, number of rows.
local rows = {}
local count = tonumber(ARGV[3])
if count > 0 then
  rows = redis.call(ARGV[1], KEYS[1], ARGV[2], ARGV[2] + count - 1, 'WITHSCORES')
end
return {rows, redis.call('ZCARD', KEYS[1]), KEYS[2] and redis.call('GET', KEYS[2]) or false}
