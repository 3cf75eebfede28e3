-- One change of a board and its meta, for tests.
-- KEYS: board, meta. ARGV: op, member, delta or score, now, run of a new board.
local mod = 2 ^ 48
local now = tonumber(ARGV[4])
local run, seq, sum, members = tonumber(ARGV[5]), 0, 0, 0
local meta = redis.call('GET', KEYS[2])
if meta then
  local version, flags
  version, flags, run, seq, sum, members = struct.unpack('>BBI8I8I8I8', meta)
end

local function hash(score)
  return tonumber(string.sub(redis.sha1hex(struct.pack('>d', tonumber(score) + 0) .. ARGV[2]), 1, 12), 16)
end

local old = redis.call('ZSCORE', KEYS[1], ARGV[2])
if ARGV[1] == 'incr' then
  redis.call('ZINCRBY', KEYS[1], ARGV[3], ARGV[2])
elseif ARGV[1] == 'set' then
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[2])
else
  redis.call('ZREM', KEYS[1], ARGV[2])
end
local score = redis.call('ZSCORE', KEYS[1], ARGV[2])
if old then
  sum, members = sum - hash(old), members - 1
end
if score then
  sum, members = sum + hash(score), members + 1
end
seq, sum = seq + 1, sum % mod
meta = struct.pack('>BBI8I8I8I8I8I8I8I8I4I2', 1, 0, run, seq, sum, members, 0, 0, now, 0, 3600, 1)
redis.call('SET', KEYS[2], meta)
return {meta, score}
