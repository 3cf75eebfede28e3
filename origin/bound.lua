-- bound returns, as an argument, where the scores begin that are better than one, if best is
-- '+inf', else where they end. With integers a score with the same integer part is not better.
local function bound(score, best, integers)
  local shown = math.floor(tonumber(score))
  if not integers or shown + 1 == shown then -- it has no fraction
    return '(' .. score
  elseif best == '+inf' then
    return string.format('%.0f', shown + 1)
  end
  return string.format('(%.0f', shown)
end

-- ahead counts the members with a better score.
local function ahead(key, score, best, integers)
  local from = bound(score, best, integers)
  if best == '+inf' then
    return redis.call('ZCOUNT', key, from, best)
  end
  return redis.call('ZCOUNT', key, best, from)
end

-- is_behind reports whether the bytes of a sort behind those of b: Lua's own comparison goes by the locale.
local function is_behind(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = a:byte(i), b:byte(i)
    if x ~= y then
      return x > y
    end
  end
  return #a > #b
end

-- rows_before returns how many rows stand before one with that score and member, in the order of the
-- command that reads rows.
local function rows_before(key, score, member, range, best)
  local high = best == '+inf'
  local before
  if high then
    before = redis.call('ZCOUNT', key, '(' .. score, best)
  else
    before = redis.call('ZCOUNT', key, best, '(' .. score)
  end
  local low, up = 0, redis.call('ZCOUNT', key, score, score) -- of the rows with this score
  while low < up do
    local middle = math.floor((low + up) / 2)
    local row = redis.call(range, key, before + middle, before + middle)[1]
    if row ~= member and is_behind(row, member) == high then
      low = middle + 1
    else
      up = middle
    end
  end
  return before + low
end
