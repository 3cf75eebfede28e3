package origin

import (
	"context"
	"fmt"

	"rankcache"
	"rankcache/wire"
)

// dataKey returns the key of what members have beside their scores, "" for boards whose members have nothing.
func (l *link) dataKey(b rankcache.BoardID) string {
	if l.hasData == nil || !l.hasData(b) {
		return ""
	}
	return l.names.CompanionKey(b, wire.Data)
}

// joinData joins members, as they are on a board's rows, with their data in Redis, which can be newer than the rows.
func (l *link) joinData(ctx context.Context, key string, rows []rankcache.Entry) error {
	if key == "" || len(rows) == 0 {
		return nil
	}
	members := make([]string, len(rows))
	for i := range rows {
		members[i] = rows[i].Member
	}
	values, err := l.client.HMGet(ctx, key, members...).Result()
	if err != nil {
		return err
	}
	for i, v := range values {
		text, _ := v.(string)
		rows[i].Member = rankcache.JoinData(rows[i].Member, text)
	}
	return nil
}

// toData converts the list member, data, member, data, ... of a script.
func toData(key string, list any) (d *rankcache.Data, err error) {
	if list == nil {
		return nil, nil
	}
	pairs, ok := list.([]any)
	if !ok {
		return nil, &badReply{key, fmt.Sprintf("answered %T for the data of members", list)}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		member, _ := pairs[i].(string)
		text, _ := pairs[i+1].(string)
		d = d.With(member, text)
	}
	return d, nil
}
