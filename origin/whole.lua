-- A run of rows, and a member with its surroundings, with the board's members and meta,
-- all of one instant.
-- KEYS: board [, meta]. ARGV: ZREVRANGE or ZRANGE, first index, number of rows, ZREVRANK
-- or ZRANK, member ('': nobody), neighbours on each side (-1: none), and the command
-- with the bound that find the nearest better score ('': not wanted), and whether the members
-- with better scores are counted ('': no), and whether only the integer parts of scores
-- count ('': no).

local integers = ARGV[10] ~= ''

-- ahead_of is for the first of the rows, which are members and scores in turn.
local function ahead_of(rows)
  return ARGV[9] ~= '' and rows[2] and ahead(KEYS[1], rows[2], ARGV[8], integers)
end

local rows = {}
local count = tonumber(ARGV[3])
if count > 0 then
  rows = redis.call(ARGV[1], KEYS[1], ARGV[2], ARGV[2] + count - 1, 'WITHSCORES')
end
local rank = ARGV[5] ~= '' and redis.call(ARGV[4], KEYS[1], ARGV[5])
local score, first, neighbours, better, own_ahead = false, 0, {}, {}, false
if rank then
  score = redis.call('ZSCORE', KEYS[1], ARGV[5])
  local around = tonumber(ARGV[6])
  if around >= 0 then
    first = math.max(0, rank - around)
    neighbours = redis.call(ARGV[1], KEYS[1], first, rank + around, 'WITHSCORES')
  end
  if ARGV[7] ~= '' then
    better = redis.call(ARGV[7], KEYS[1], bound(score, ARGV[8], integers), ARGV[8], 'WITHSCORES', 'LIMIT', 0, 1)
  end
  own_ahead = ahead_of(neighbours[2] and neighbours or {ARGV[5], score})
end
return {rows, rank, score, first, neighbours, better, redis.call('ZCARD', KEYS[1]), KEYS[2] and redis.call('GET', KEYS[2]) or false, ahead_of(rows) or false, own_ahead or false}
