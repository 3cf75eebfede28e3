-- Scores of given members and of members at random ranks, with the board's members
-- and meta, of one instant. The caller passes the random numbers because math.random
-- returns the same ones in every run of a script.
-- KEYS: board [, meta]. ARGV: number of members, the members, then fractions
-- of the board from 0 up to (not including) 1.
local size = redis.call('ZCARD', KEYS[1])
local given, random = {}, {}
local members = tonumber(ARGV[1])
for i = 2, members + 1 do
  given[#given + 1] = redis.call('ZSCORE', KEYS[1], ARGV[i])
end
for i = members + 2, size > 0 and #ARGV or 0 do
  local rank = math.floor(ARGV[i] * size)
  local row = redis.call('ZRANGE', KEYS[1], rank, rank, 'WITHSCORES')
  random[#random + 1] = row[1]
  random[#random + 1] = row[2]
end
return {given, random, size, KEYS[2] and redis.call('GET', KEYS[2]) or false}
