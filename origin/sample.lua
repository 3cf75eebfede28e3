-- Scores of given members and of members at random ranks, with the board's members
-- and meta, of one instant. The caller passes the random numbers because math.random
-- returns the same ones in every run of a script.
-- KEYS: board [, meta] [, data]. ARGV: whether members have data ('': no), number of members, the members, then fractions
-- of the board from 0 up to (not including) 1.
local size, meta = redis.call('ZCARD', KEYS[1]), KEYS[2]
local given, random, data = {}, {}, {}
local function add(member)
  local text = ARGV[1] ~= '' and redis.call('HGET', KEYS[#KEYS], member)
  if text then
    data[#data + 1] = member
    data[#data + 1] = text
  end
end
if ARGV[1] ~= '' then
  meta = KEYS[3] and KEYS[2]
end
local members = tonumber(ARGV[2])
for i = 3, members + 2 do
  given[#given + 1] = redis.call('ZSCORE', KEYS[1], ARGV[i])
  add(ARGV[i])
end
for i = members + 3, size > 0 and #ARGV or 0 do
  local rank = math.floor(ARGV[i] * size)
  local row = redis.call('ZRANGE', KEYS[1], rank, rank, 'WITHSCORES')
  random[#random + 1] = row[1]
  random[#random + 1] = row[2]
  add(row[1])
end
return {given, random, size, meta and redis.call('GET', meta) or false, data}
