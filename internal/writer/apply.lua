-- Applies one command to a board, once per order id.
-- KEYS: board, its meta, the order id's hash in set 0 and in set 1.
-- ARGV: now in ms, the order id's field, mark (op and a hash of number and member),
-- member, number (what incr adds or set sets), time of the command in ms, buckets.
-- Returns "+" and a record if the command is applied now, "=" and the earlier record
-- if its order id is known, "!" and a reason if it is refused, "p" if prepare.lua has
-- to run first, "w" while the board is adopted, "n" and the board's number of buckets,
-- "m" if the meta can't be read. Layouts: meta in wire/meta.go, record in order.go.
local call, pack = redis.call, struct.pack
local meta = call('GET', KEYS[2])
if not meta then
  return 'p'
elseif #meta ~= 72 or meta:byte() ~= 1 then
  return 'm'
end
local _, flags, _, seq, sum, members, finish, expires, last, turn, life, buckets =
  struct.unpack('>BBI8I8I8I8I8I8I8I8I4I2', meta)
if buckets ~= tonumber(ARGV[7]) then
  return 'n' .. string.format('%.0f', buckets)
end
local now, span = math.max(tonumber(ARGV[1]), last), life * 1000 + 120000
if now >= (turn + 1) * span then
  return 'p'
end

-- A bucket has its placeholder, the field "", from birth.
local field, set = ARGV[2], KEYS[3 + turn % 2]
local known = call('HMGET', set, '', field)
local older = call('HMGET', KEYS[4 - turn % 2], '', field)
if not known[1] or not older[1] then
  return 'p'
end
local record = known[2] or older[2]
if record then
  return (record:sub(1, 7) == ARGV[3] and '=' .. record) or '!order_conflict'
end
if flags >= 16 then -- adopting or without a sum
  return flags % 32 >= 16 and 'w' or 'p'
end
local at = tonumber(ARGV[6])
if at < (turn - 1) * span + 60000 then
  return '!too_old'
elseif at > now + 60000 then
  return '!early'
end
local board, member = KEYS[1], ARGV[4]
if call('ZCARD', board) ~= members then
  return 'p'
end
local old = call('ZSCORE', board, member)

-- The sum loses the member's old share and gets the new one.
local op, score = ARGV[3]:byte(), tonumber(ARGV[5])
local hash = redis.sha1hex
if old then
  old = tonumber(old) + 0
  sum = sum - tonumber(hash(pack('>d', old) .. member):sub(1, 12), 16)
end
if op == 3 then
  score = nil
  members = members - (old and 1 or 0)
else
  if op == 1 then
    score = (old or 0) + score + 0
    if score ~= score or score == math.huge or score == -math.huge then
      return '!overflow'
    end
  end
  sum = sum + tonumber(hash(pack('>d', score) .. member):sub(1, 12), 16)
  members = members + (old and 0 or 1)
end
sum, seq = sum % 281474976710656, seq + 1

-- Nothing below can fail.
if score then
  call('ZADD', board, string.format('%.17g', score), member)
  if members == 1 and not old and expires > 0 then
    call('PEXPIREAT', board, string.format('%.0f', expires))
  end
elseif old then
  call('ZREM', board, member)
end
call('SETRANGE', KEYS[2], 10, pack('>I8I8I8I8I8I8', seq, sum, members, finish, expires, now))
record = ARGV[3] .. pack('>d', score or 0) .. meta:sub(4, 10) .. pack('>I6I6I4I6', seq, sum, members, at)
call('HSET', set, field, record)
return '+' .. record
