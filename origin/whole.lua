-- A run of rows, and a member with its surroundings, with the board's members and meta,
-- all of one instant.
-- KEYS: board [, meta]. ARGV: ZREVRANGE or ZRANGE, first index, number of rows, ZREVRANK
-- or ZRANK, member ('': nobody), neighbours on each side (-1: none), and the command
-- with the bound that find the nearest better score ('': not wanted), and whether the members
-- with better scores are counted ('': no), and whether only the integer parts of scores
-- count ('': no).

-- bound is the first score that is not better than one, or with integers the last that is,
-- as an argument.
local function bound(score)
  local shown = math.floor(tonumber(score))
  if ARGV[10] == '' or shown + 1 == shown then -- it has no fraction
    return '(' .. score
  elseif ARGV[8] == '+inf' then
    return string.format('%.0f', shown + 1)
  end
  return string.format('(%.0f', shown)
end

-- ahead counts the members with a better score than the first of the rows, which are
-- members and scores in turn.
local function ahead(rows)
  if ARGV[9] == '' or not rows[2] then
    return false
  end
  if ARGV[8] == '+inf' then
    return redis.call('ZCOUNT', KEYS[1], bound(rows[2]), '+inf')
  end
  return redis.call('ZCOUNT', KEYS[1], '-inf', bound(rows[2]))
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
    better = redis.call(ARGV[7], KEYS[1], bound(score), ARGV[8], 'WITHSCORES', 'LIMIT', 0, 1)
  end
  own_ahead = ahead(neighbours[2] and neighbours or {ARGV[5], score})
end
return {rows, rank, score, first, neighbours, better, redis.call('ZCARD', KEYS[1]), KEYS[2] and redis.call('GET', KEYS[2]) or false, ahead(rows), own_ahead}
