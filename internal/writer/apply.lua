-- Applies commands to a board in sequence, each once per order id. Several in one call
-- share the reading and writing of the meta, which is a third of the work.
-- KEYS: board, its meta, and pairs: a hash of orders in set 0 and in set 1.
-- ARGV: now in ms, buckets of the board, and pairs: member; and packed (order.go) time
-- of the command in ms, number (what incr adds or set sets), which pair of hashes, the
-- order id's field, mark (op and a hash of number and member).
-- Returns for each command "+" and a record if it is applied now, "=" and the earlier
-- record if its order id is known, "!" and a reason if it is refused, "w" while the
-- board is adopted, "p" if prepare.lua has to run first. Instead of the list it returns
-- "p", "n" and the board's number of buckets, or "m" if the meta can't be read.
-- Layouts: meta in wire/meta.go, record in order.go.
local call, pack, unpack, sub, tonumber, sha1hex, format =
  redis.call, struct.pack, struct.unpack, string.sub, tonumber, redis.sha1hex, string.format
local board, meta = KEYS[1], call('GET', KEYS[2])
if not meta then
  return 'p'
elseif #meta ~= 72 or meta:byte() ~= 1 then
  return 'm'
end
local _, flags, run, seq, sum, members, finish, expires, last, turn, life, buckets =
  unpack('>BBI8I8I8I8I8I8I8I8I4I2', meta)
if buckets ~= tonumber(ARGV[2]) then
  return 'n' .. format('%.0f', buckets)
end
local now, span, before = math.max(tonumber(ARGV[1]), last), life * 1000 + 120000, seq
if now >= (turn + 1) * span then
  return 'p'
end

-- Why no new command is applied. Without a sum, or after somebody wrote past the
-- scripts, the board is adopted first.
local waits
if flags % 32 >= 16 then
  waits = 'w'
elseif call('ZCARD', board) ~= members or flags >= 32 then
  waits = 'p'
end
if #ARGV > 4 then -- a single command reads before it writes anyway
  for i = 3, #KEYS do
    if call('HEXISTS', KEYS[i], '') == 0 then -- the placeholder that it has from birth
      return 'p'
    end
  end
end

-- Nothing fails after the first change.
local function apply(member, at, score, hash, field, mark)
  local set = KEYS[hash + turn % 2]
  local record = call('HGET', set, field) or call('HGET', KEYS[hash + 1 - turn % 2], field)
  if record then
    return sub(record, 1, 7) == mark and '=' .. record or '!order_conflict'
  elseif waits then
    return waits
  elseif at < (turn - 1) * span + 60000 then
    return '!too_old'
  elseif at > now + 60000 then
    return '!early'
  end

  -- The sum loses the member's old share and gets the new one.
  local op, old, share = mark:byte(), call('ZSCORE', board, member), 0
  if old then
    old = tonumber(old) + 0
    share = -tonumber(sub(sha1hex(pack('>d', old) .. member), 1, 12), 16)
  end
  if op == 3 then
    if old then
      call('ZREM', board, member)
      members = members - 1
    end
  else
    score = score + 0 -- -0 becomes 0
    if op == 1 then
      score = (old or 0) + score
      if score - score ~= 0 then -- infinite, or no number
        return '!overflow'
      end
    end
    share = share + tonumber(sub(sha1hex(pack('>d', score) .. member), 1, 12), 16)
    call('ZADD', board, format('%.17g', score), member)
    if not old then
      members = members + 1
      if members == 1 and expires > 0 then
        call('PEXPIREAT', board, format('%.0f', expires))
      end
    end
  end
  sum, seq = (sum + share) % 281474976710656, seq + 1
  record = pack('>c7dI7I6I6I4I6', mark, score, run, seq, sum, members, at)
  call('HSET', set, field, record)
  return '+' .. record
end

local replies = {}
for i = 3, #ARGV, 2 do
  replies[#replies + 1] = apply(ARGV[i], unpack('>I8dBc10c7', ARGV[i + 1]))
end
if seq > before then
  call('SETRANGE', KEYS[2], 10, pack('>I8I8I8I8I8I8', seq, sum, members, finish, expires, now))
end
return replies
