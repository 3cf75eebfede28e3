-- A run of rows, and members with what stands next to them, with the board's members and
-- meta, all of one instant.
-- KEYS: board [, meta]. ARGV: ZREVRANGE or ZRANGE, first index, number of rows, ZREVRANK or
-- ZRANK, neighbours on each side (-1: none), the command that finds the nearest better score
-- ('': not wanted), the best score there may be, whether the members with better scores are
-- counted ('': no), whether only the integer parts of scores count ('': no), the least and the
-- greatest score of the rows ('': all rows), whether each member has a score behind it that it is taken
-- to have ('': it is looked up), whether members have data ('': no): its hash is then the last of KEYS; the members. The last
-- of the reply are the rows before those scores, and with them; and the members with data, and it.

local best, integers = ARGV[7], ARGV[9] ~= ''

-- ahead_of is for a row with that score.
local function ahead_of(score)
  return ARGV[8] ~= '' and score and ahead(KEYS[1], score, best, integers) or false
end

-- own returns rank, score, index of the first neighbour, neighbours, the row with the nearest
-- better score, and the count ahead of the first neighbour or, without any, of the member.
local function own(member, score)
  local rank, around = nil, tonumber(ARGV[5])
  if score then
    rank = rows_before(KEYS[1], score, member, ARGV[1], best)
  else
    rank = redis.call(ARGV[4], KEYS[1], member)
    if not rank then
      return false
    end
    score = redis.call('ZSCORE', KEYS[1], member)
  end
  local first, neighbours, better = 0, {}, {}
  if around >= 0 then
    first = math.max(0, rank - around)
    neighbours = redis.call(ARGV[1], KEYS[1], first, rank + around, 'WITHSCORES')
  end
  if ARGV[6] ~= '' then
    better = redis.call(ARGV[6], KEYS[1], bound(score, best, integers), best, 'WITHSCORES', 'LIMIT', 0, 1)
  end
  return {rank, score, first, neighbours, better, ahead_of(neighbours[2] or score)}
end

local rows, owns, range = {}, {}, false
local first, count = tonumber(ARGV[2]), tonumber(ARGV[3])
if ARGV[10] ~= '' then
  local before
  if best == '+inf' then
    before = redis.call('ZCOUNT', KEYS[1], '(' .. ARGV[11], best)
  else
    before = redis.call('ZCOUNT', KEYS[1], best, '(' .. ARGV[10])
  end
  range = {before, redis.call('ZCOUNT', KEYS[1], ARGV[10], ARGV[11])}
  first, count = before + first, math.min(count, range[2] - first)
end
if count > 0 then
  rows = redis.call(ARGV[1], KEYS[1], first, first + count - 1, 'WITHSCORES')
end
local step = ARGV[12] ~= '' and 2 or 1
for i = 14, #ARGV, step do
  owns[#owns + 1] = own(ARGV[i], step == 2 and ARGV[i + 1])
end
local meta, data = KEYS[2], false
if ARGV[13] ~= '' then
  meta, data = KEYS[3] and KEYS[2], {}
  local function add(list) -- rows with scores
    for i = 1, #list, 2 do
      local text = redis.call('HGET', KEYS[#KEYS], list[i])
      if text then
        data[#data + 1] = list[i]
        data[#data + 1] = text
      end
    end
  end
  add(rows)
  for i, found in ipairs(owns) do
    add({ARGV[14 + (i - 1) * step], ''})
    add(found and found[4] or {})
  end
end
return {rows, ahead_of(rows[2]), owns, redis.call('ZCARD', KEYS[1]), meta and redis.call('GET', meta) or false, range, data}
