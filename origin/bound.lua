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

