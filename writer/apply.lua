-- Applies commands to a board in sequence, each once per order id. Several in one call
-- share the reading and writing of the meta, which is a third of the work.
-- KEYS: board, its meta, and pairs: a hash of orders in set 0 and in set 1.
-- ARGV: now in ms, buckets of the board, for how long in ms it is kept after its last change
-- (0: for ever, below: this script does not look), and pairs: member; and packed (order.go)
-- time of the command in ms, number (what incr adds or set sets), which pair of hashes, the
-- order id's field, mark (op and a hash of number and member), and of a durable board its origin.
-- Returns a list with, for each command, "+" and a record if it is applied now, "=" and
-- the earlier record if its order id is known ("<" if that is of another run than the
-- durable board has now), "!" and a reason if it is refused, "w" while the board is adopted, "p" if prepare.lua has to run first. Of a single command it
-- returns the reply alone. Instead of replies it returns "p", "n" and the board's number
-- of buckets, "m" if the meta can't be read, or "s" if the server's era is none of the caller's.
-- Layouts: meta in wire/meta.go, record in order.go.
-- Sections between --if and --end are only in the scripts of boards whose class needs
-- them (script.go). Of durable boards ARGV has the eras of all masters behind the time that
-- the board is kept. With guards KEYS has their hash behind the meta, and ARGV then has: changes a member, within ms, members, and 1 if what is beyond is refused; the
-- reply to a command beyond that is not refused begins with "C" or "M" instead of "+". Where the guard limits gain follow in KEYS the
-- hash of gains, and in ARGV how much, and within ms; the reply begins with "G".
-- Of durable boards with guards ARGV then has the places of all commands: for each 28 bytes, digest of the topic and partition,
-- offset, and time of the record in ms; or nothing if they are posts. What is among the offsets that the board has seen and has no record was
-- refused before, and is refused again; the time that counts for the guard is the record's, so that reading again decides alike.
-- Of primes both hashes of a pair are the same one, which has all primes of the board until it has the bit primed (64).
-- With trim then follow in KEYS the hash of all members' scores, and in ARGV how many stay
-- in the sorted set.
--if Data
-- Then follows in KEYS the hash of the members' data; a member in ARGV has the command's, if it has any, behind a 0.
--end
-- Of a board that hides members (bit 128), and of commands to hide or restore one, KEYS then has the hash of hidden
-- members. The other scripts return "h" for such a board.
-- Of calls with a command to forget a member follow in KEYS all hashes by member that a board can have, and its ladder.
--if Log
-- The board's id is then in ARGV. What one call has changed is one entry of the server's log (wire/log.go); if the log does
-- not take it the changes stand, and the error follows the replies, of a single command too.
--end
-- No functions of its own: to make a closure costs as much as a call of a command.
local call, pack, unpack, sub, sha1hex = redis.call, struct.pack, struct.unpack, string.sub, redis.sha1hex
local board, meta = KEYS[1], call('GET', KEYS[2])
--if Durable
-- Nothing is applied, nor answered from records, in a history that the caller does not know.
local info = call('INFO', 'replication')
local at = string.find(info, 'master_replid:', 1, true) + 14
local era = sub(info, at, at + 15)
if not string.find(ARGV[4], era, 1, true) then
  return 's'
end
--end
if not meta then
  return 'p'
elseif META_UNREADABLE then
  return 'm'
end
local _, flags, run, seq, sum, members, finish, expires, last, turn, life, buckets =
  unpack('>BBI8I8I8I8I8I8I8I8I4I2', meta)
if buckets ~= tonumber(ARGV[2]) then
  return 'n' .. string.format('%.0f', buckets)
end
--if Plain
if flags >= 128 then
  return 'h'
end
--end
--if Prime
if flags % 128 >= 64 or call('HGET', KEYS[#KEYS], '') ~= 'whole' then -- a rebuilt board has its primes, and no record of them
  return '!primed'
end
--end
local orders, first, keep = 3, 4, tonumber(ARGV[3]) -- the first of the pairs in KEYS, and in ARGV
--if Durable
first = 5
--end
--if Guard
local guard, changes, per, most, refuse =
  KEYS[3], tonumber(ARGV[first]), tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2]), ARGV[first + 3] == '1'
orders, first = 4, first + 4
--if Gain
local gain, highest, gainPer = KEYS[4], tonumber(ARGV[first]), tonumber(ARGV[first + 1])
orders, first = 5, first + 2
--end
--if Durable
local places, seen, from, upto, saw = ARGV[first], sub(meta, 89, 100), 0, 0, false
first = first + 1
if #meta >= 116 then
  from, upto = unpack('>I8I8', sub(meta, 101, 116))
end
--end
--end
--if Trim
local scores, best = KEYS[orders], tonumber(ARGV[first])
orders, first = orders + 1, first + 1
if call('HEXISTS', scores, '') == 0 then
  return 'p'
end
--end
--if Data
local datas = KEYS[orders]
orders = orders + 1
if call('HEXISTS', datas, '') == 0 then
  return 'p'
end
--end
--if Hidden
local hidden = KEYS[orders]
orders = orders + 1
if flags >= 128 and call('HEXISTS', hidden, '') == 0 then
  return 'p'
end
--end
--if Forget
local traces = orders -- the first of six
orders = orders + 6
--end
--if Log
local id, log = ARGV[first], {} -- texts that are joined at the end: each longer one would be copied
first = first + 1
--end
--if Ties
local floor, frexp, ldexp = math.floor, math.frexp, math.ldexp
--end
local now, span, before, single = math.max(tonumber(ARGV[1]), last), life * 1000 + 120000, seq, #ARGV == first + 1
if now >= (turn + 1) * span then
  return 'p'
end

-- Why no new command is applied: the board is closed; or without a sum, or after
-- somebody wrote past the scripts, it is adopted first; or it has no run in this era yet; or its
-- keys, all of which only prepare.lua knows, would expire too early, or some day though it is kept for ever.
local waits
if flags % 16 >= 2 then
  waits = '!ended'
elseif flags % 32 >= 16 then
  waits = 'w'
elseif call('ZCARD', board) ~= members or flags % 64 >= 32 then
  waits = 'p'
--if Durable
elseif sub(meta, 73, 88) ~= era then
  waits = 'p'
--end
elseif finish == 0 and (keep > 0 and expires < now + keep or keep == 0 and expires > 0) then
  waits = 'p'
end
if not single then -- a single command reads before it writes anyway
  for i = orders, #KEYS do
    if call('HEXISTS', KEYS[i], '') == 0 then -- the placeholder that it has from birth
      return 'p'
    end
  end
end

--if Guard
-- The hash counts the changes of each member within the time that its field '' names.
local counted = call('HGET', guard, '')
if not counted then
  return 'p'
end
--if Gain
local gained = call('HGET', gain, '')
if not gained then
  return 'p'
end
gained = tonumber(gained) or 0
--end
--end

-- Nothing fails after the first change of a score.
--if Guard
--if Durable
counted = tonumber(counted) or 0
--else
local within = string.format('%.0f', math.floor(now / per))
if counted ~= within and not waits then
  call('UNLINK', guard)
  call('HSET', guard, '', within)
  if expires > 0 then
    call('PEXPIREAT', guard, string.format('%.0f', expires))
  end
end
--end
--end
local parity, replies = turn % 2, {}
for i = first, #ARGV, 2 do
  local member, at, number, hash, field, mark = ARGV[i], unpack('>I8dBc10c7', ARGV[i + 1])
  local set, reply = KEYS[hash + parity], waits
  --if Data
  local cut, had, given = string.find(member, '\0', 1, true), '', nil -- what the member had, and gets if the command tells
  if cut then
    member, given = sub(member, 1, cut - 1), sub(member, cut + 1)
  end
  --end
  local record = call('HGET', set, field) or call('HGET', KEYS[hash + 1 - parity], field)
  --if Guard
  --if Durable
  local known, place, offset, arrived = record, sub(places, 14 * (i - first) + 1, 14 * (i - first) + 12), nil, now
  if places ~= '' then
    offset, arrived = unpack('>I8I8', sub(places, 14 * (i - first) + 13, 14 * (i - first) + 28))
  end
  --end
  --end
  if record then
    local sign = '='
    --if Durable
    sign = sub(record, 16, 22) == sub(meta, 4, 10) and '=' or '<'
    --end
    reply = sub(record, 1, 7) == mark and sign .. record or '!order_conflict'
  elseif waits then -- the reply
  --if Guard
  --if Durable
  elseif offset and place == seen and from <= offset and offset < upto then
    reply = '!S'
  --end
  --end
  elseif at < (turn - 1) * span + 60000 then
    reply = '!too_old'
  --if Durable
  -- Whether it is early the time of its record decides (process.go): now is another one when it is read again.
  --else
  elseif at > now + 60000 then
    reply = '!early'
  --end
  else
    -- The sum loses the member's old share and gets the new one.
    local op, new = unpack('>BI6', mark) -- the share of the command's number
    local old, score, share, limit = call('ZSCORE', board, member), number + 0, 0, 9007199254740991 -- -0 becomes 0
    if old then
      old = tonumber(old) + 0
      --if Data
      had = call('HGET', datas, member) or ''
      share = -tonumber(sub(sha1hex(pack('>d', old) .. member .. (had ~= '' and '\0' .. had or '')), 1, 12), 16)
      --else
      share = -tonumber(sub(sha1hex(pack('>d', old) .. member), 1, 12), 16)
      --end
    end
    --if Forget
    local forgets = op == 8
    if forgets then -- a delete, of a member that has nothing else: its data are in the share, so they go here
      op = 3
      for k = traces, traces + 4 do
        redis.pcall('HDEL', KEYS[k], member)
      end
      redis.pcall('UNLINK', KEYS[traces + 5])
    end
    --end
    local base = old
    --if Trim
    if not old then
      base = tonumber(call('HGET', scores, member) or nil)
    end
    --end
    --if Hidden
    -- A hidden member's score is in the hash alone. What hides or restores it gives it the score that it has.
    local serial, kept = string.match(call('HGET', hidden, member) or '', '^(%d+) ?(.*)$')
    serial, kept = serial or 0, kept ~= '' and kept
    if kept then
      base = tonumber(kept)
    end
    local hides, moves, full = kept, op > 5 and op, false
    if moves then
      full = serial == 0 and call('HLEN', hidden) > 10000
      if number > tonumber(serial) then
        hides, serial = op == 6, string.format('%.0f', number)
      end
      if hides and not kept and call('HLEN', hidden) > 1000 then
        local n = 0
        local all = call('HGETALL', hidden)
        for k = 2, #all, 2 do
          n = n + (string.find(all[k], ' ', 1, true) and 1 or 0)
        end
        full = full or n >= 1000
      end
      op, score = base and 2 or 3, base or 0
      --if Ties
      score = floor(score)
      --end
    end
    --end
    if base and op == 1 then
      --if Ties
      score = floor(base) + number
      --else
      score = base + number
      --end
    end
    --if Best
    --if Data
    if base and op == 5 and base >= score then
      given = nil -- it is that of the best
    end
    --end
    if base and op == 5 and base > score then
      --if Ties
      score = floor(base)
      --else
      score = base
      --end
    end
    --end
    --if Ties
    limit = 1099511627776 -- 2^40
    --end
    --if Guard
    --if Durable
    local within = math.floor(arrived / per) * per
    if within > counted then
      counted = within
      call('UNLINK', guard)
      call('HSET', guard, '', string.format('%.0f', within))
      if expires > 0 then
        call('PEXPIREAT', guard, string.format('%.0f', expires))
      end
    end
    --end
    --if Gain
    --if Durable
    local stretch = math.floor(arrived / gainPer) * gainPer -- so that of another length it goes on
    --else
    local stretch = math.floor(now / gainPer) * gainPer
    --end
    if stretch > gained then
      gained = stretch
      call('UNLINK', gain)
      call('HSET', gain, '', string.format('%.0f', stretch))
      if expires > 0 then
        call('PEXPIREAT', gain, string.format('%.0f', expires))
      end
    end
    local total = op == 1 and number > 0 and number + (tonumber(call('HGET', gain, member) or nil) or 0)
    --end
    local sign = '+'
    --if Hidden
    if moves then -- what guards don't count
    elseif not (old or kept) and op ~= 3 and members >= most then
    --else
    if not old and op ~= 3 and members >= most then
    --end
      sign = 'M'
    --if Forget
    elseif forgets then -- nor this
    --end
    elseif score <= limit and score >= -limit and (tonumber(redis.pcall('HINCRBY', guard, member, 1)) or 0) > changes then
      sign = 'C'
    --if Gain
    elseif total and total > highest then
      sign = 'G'
    --end
    end
    --end
    if not (score <= limit and score >= -limit) then -- beyond, infinite, or no number
      reply = '!score_range'
    --if Hidden
    elseif full then
      reply = '!hidden_full'
    --end
    --if Guard
    elseif sign ~= '+' and refuse then
      reply = '!' .. sign
    --end
    else
      --if Ties
      -- The fraction is made of the seq at which the member came to the score, in as many
      -- binary digits as a double has left (wire/tie.go).
      if op ~= 3 then
        if base and score == floor(base) then
          score = base
        else
          local _, digits = frexp(score)
          local steps, reach = ldexp(1, digits < 13 and 40 or 53 - digits), seq + 1
          if reach >= steps then
            reach = steps - 1
          end
          --if Last
          score = score + reach / steps
          --else
          score = score + (steps - 1 - reach) / steps
          --end
        end
      end
      --end
      --if Data
      local data = op ~= 3 and (given or had) or ''
      if data == '' then -- of a member that is new, too: another may have been removed by hand
        if had ~= '' or not old then
          call('HDEL', datas, member)
        end
      elseif data ~= had then
        call('HSET', datas, member, data)
      end
      --end
      --if Hidden
      if moves and flags < 128 then
        flags = flags + 128
        call('HSET', hidden, '', '')
        call('SETRANGE', KEYS[2], 1, string.char(flags))
        if expires > 0 then
          call('PEXPIREAT', hidden, string.format('%.0f', expires))
        end
      end
      if hides then
        call('HSET', hidden, member, serial .. ' ' .. (op == 3 and '-' or string.format('%.17g', score)))
      elseif moves then
        call('HSET', hidden, member, serial)
      end
      if op == 3 or hides then
      --else
      if op == 3 then
      --end
        --if Trim
        call('HDEL', scores, member)
        --end
        if old then
          call('ZREM', board, member)
          members = members - 1
        end
      else
        --if By
        do
        --else
        if score ~= number then
        --end
          --if Data
          new = tonumber(sub(sha1hex(pack('>d', score) .. member .. (data ~= '' and '\0' .. data or '')), 1, 12), 16)
          --else
          new = tonumber(sub(sha1hex(pack('>d', score) .. member), 1, 12), 16)
          --end
        end
        share = share + new
        call('ZADD', board, score, member) -- Redis writes it with 17 digits
        --if Trim
        call('HSET', scores, member, score)
        --end
        if not old then
          members = members + 1
          if members == 1 and expires > 0 then
            call('PEXPIREAT', board, string.format('%.0f', expires))
          end
        end
      end
      sum, seq = (sum + share) % 281474976710656, seq + 1
      --if Data
      record = pack('>c7dI7I6I6I4I6I2c0', mark, score, run, seq, sum, members, at, #data, data)
      --if Origin
      record = record .. sub(ARGV[i + 1], 35)
      --end
      --else
      --if Hidden
      record = pack('>c7dI7I6I6I4I6', mark, score, run, seq, sum, members, at)
      if serial ~= 0 then -- also of one that was restored: a ledger knows by it which command stands
        record = record .. pack('>I6BI7', 0, 200 + (op == 3 and 1 or 0) + (hides and 2 or 0), tonumber(serial))
      end
      record = record .. sub(ARGV[i + 1], 35)
      --else
      --if Origin
      record = pack('>c7dI7I6I6I4I6c4', mark, score, run, seq, sum, members, at, sub(ARGV[i + 1], 35))
      --else
      record = pack('>c7dI7I6I6I4I6', mark, score, run, seq, sum, members, at)
      --end
      --end
      --end
      --if Trim
      while members > best and #record < 1000 do
        local worst = call('ZRANGE', board, 0, 0, 'WITHSCORES')
        local left = tonumber(worst[2]) + 0
        call('ZREM', board, worst[1])
        call('HSET', scores, worst[1], left)
        members, seq = members - 1, seq + 1
        --if Data
        local lost = call('HGET', datas, worst[1])
        call('HDEL', datas, worst[1])
        sum = (sum - tonumber(sub(sha1hex(pack('>d', left) .. worst[1] .. (lost and '\0' .. lost or '')), 1, 12), 16)) % 281474976710656
        --else
        sum = (sum - tonumber(sub(sha1hex(pack('>d', left) .. worst[1]), 1, 12), 16)) % 281474976710656
        --end
        record = record .. pack('>I6Bc0', sum, #worst[1], worst[1])
      end
      --end
      --if Trim
      --if Durable
      record = record .. sub(ARGV[i + 1], 35) -- its origin is behind the trims
      --end
      --end
      call('HSET', set, field, record)
      --if Log
      log[#log + 1] = pack('>I2c0I2c0', #member, member, #record, record)
      --end
      reply = '+' .. record
      --if Gain
      if total then
        call('HSET', gain, member, total)
      end
      --end
      --if Guard
      reply = sign .. record
      --end
    end
  end
  --if Guard
  --if Durable
  if offset and not known and not waits and reply ~= '!S' then
    if place ~= seen then
      seen, from, upto = place, offset, offset
    end
    upto, saw = math.max(upto, offset + 1), true
  end
  --end
  --end
  replies[(i - first) / 2 + 1] = reply
end
if seq > before then
  call('SETRANGE', KEYS[2], 10, pack('>I8I8I8I8I8I8', seq, sum, members, finish, expires, now))
end
--if Guard
--if Durable
if saw then
  call('SETRANGE', KEYS[2], 88, pack('>c12I8I8', seen, from, upto))
end
--end
--end
--if Log
if seq > before then
  local data = '\0'
  --if Data
  data = '\1'
  --end
  local added = redis.pcall('XADD', 'rankcache:log', '*', 'b', id, 'c', '\1' .. data .. table.concat(log))
  if type(added) == 'table' then
    replies[#replies + 1] = added.err
    return replies
  end
end
--end
return single and replies[1] or replies
