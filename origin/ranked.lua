-- Ranks and scores of members, and how many have a better score than each, with the board's
-- members and meta, all of one instant.
-- KEYS: board [, meta]. ARGV: ZREVRANK or ZRANK, +inf or -inf as the best score, whether only
-- the integer parts of scores count ('': no), the members.
local ranks, scores, counts = {}, {}, {}
for i = 4, #ARGV do
  local n = i - 3
  ranks[n], scores[n], counts[n] = redis.call(ARGV[1], KEYS[1], ARGV[i]), redis.call('ZSCORE', KEYS[1], ARGV[i]), false
  if scores[n] then
    counts[n] = ahead(KEYS[1], scores[n], ARGV[2], ARGV[3] ~= '')
  end
end
return {ranks, scores, counts, redis.call('ZCARD', KEYS[1]), KEYS[2] and redis.call('GET', KEYS[2]) or false}
