package roomsync_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rankcache/internal/roomsync"
	"rankcache/rooms"
)

const hourClass = `classes: [{name: hour, board: "hour:{period}", period: 1h, linger: 0s, mode: super-hot}]`

// wantClasses compares "name period" of the classes in force.
func wantClasses(t *testing.T, f *roomsync.Follower, want string) {
	t.Helper()
	var got []string
	for _, c := range f.File().Classes {
		got = append(got, c.Name()+" "+c.Calendar().String())
	}
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("classes in force: %s; want %s", text, want)
	}
}

// Virtual time begins with the year 2000; after ten seconds the period before is over.
func TestClassesSetAtRunTimeReachAll(t *testing.T) {
	path := writeFile(t, minuteClass)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(10 * time.Second)
		hash := newShared()
		here := run(t, newFollower(roomsync.Config{File: path, Origin: &running{}, Shared: hash}))
		there := run(t, newFollower(roomsync.Config{File: path, Origin: &running{}, Shared: hash}))
		must(t, here.SetClasses(t.Context(), []byte(hourClass)))
		wantClasses(t, here, "gift 1m, hour 1h")
		wantSuperHot(t, here, "gift:7:20000101-0001", "hour:20000101-H00")
		nextPoll()
		wantClasses(t, there, "gift 1m, hour 1h")
		wantSuperHot(t, there, "gift:7:20000101-0001", "hour:20000101-H00")
		if got := there.Status(); got.Dynamic.Classes != 1 || got.File.Classes != 2 || got.Dynamic.Entries != 0 || got.Dynamic.BadEntries != 0 {
			t.Errorf("status %+v", got)
		}
		restarted := run(t, newFollower(roomsync.Config{File: path, Origin: &running{}, Shared: hash}))
		wantClasses(t, restarted, "gift 1m, hour 1h")

		hash.fail(errRedis)
		nextPoll()
		wantClasses(t, there, "gift 1m, hour 1h")
		if err := there.SetClasses(t.Context(), []byte(hourClass)); !errors.Is(err, errRedis) {
			t.Errorf("set while Redis is down: %v", err)
		}
		hash.fail(nil)
		if found, err := there.UnsetClasses(t.Context()); !found || err != nil {
			t.Errorf("unset: %v, %v", found, err)
		}
		wantSuperHot(t, there, "gift:7:20000101-0001")
		nextPoll()
		wantClasses(t, here, "gift 1m")
		if found, err := here.UnsetClasses(t.Context()); found || err != nil {
			t.Errorf("unset again: %v, %v", found, err)
		}
	})
}

func TestClassesThatDoNotGoWithThoseInForceAreRefused(t *testing.T) {
	path := writeFile(t, minuteClass)
	synctest.Test(t, func(t *testing.T) {
		hash := newShared()
		f := run(t, newFollower(roomsync.Config{File: path, Origin: &running{}, Shared: hash}))
		must(t, f.SetClasses(t.Context(), []byte(hourClass)))
		for document, want := range map[string]string{
			"":          "no class",
			"rooms: []": "line 1: unknown or repeated key",
			"classes:\n- {name: hour, board: \"hour:{period}\", period: day}":                                           `classes set at run time: line 2: class hour: period can't change from "1h" to "day"`,
			"classes:\n- {name: gift, board: \"g:{period}\", period: 1m}":                                               `line 2: class gift: board can't change`,
			"classes:\n- {name: x, board: \"gift:{a}:{period}\", period: 1h}":                                           `classes set at run time: line 2: class x: `,
			"classes:\n- {name: x, board: \"x:{period}\", period: 1h, ops: [incr], feeds: [none]}":                      `line 2: class x: feeds "none"`,
			"classes: [{name: x, board: \"x:{period}\", period: 1h}, {name: x, board: \"y:{period}\", period: 1h}]":     "another one in line 1",
			"classes: [{name: x, board: x, period: none}]" + strings.Repeat(" ", rooms.MaxMoreClasses):                  "at most 65536",
			"classes: [{name: x, board: \"x:{period}\", period: 1h, ops: [incr], feeds: [hour]}]":                       `feeds "hour", which is not a class`,
			"classes: [{name: x, board: \"x:{p}:{period}\", period: 1h, mode: hot, dims: {p: [" + values(1000) + "]}}]": "more than 1000 boards",
		} {
			if err := f.SetClasses(t.Context(), []byte(document)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.100s: %v, want %s", document, err, want)
			}
		}
		wantClasses(t, f, "gift 1m, hour 1h")
		if hash.fields[rooms.ClassesField] != hourClass {
			t.Errorf("in the hash: %v", hash.fields)
		}
		must(t, f.SetClasses(t.Context(), []byte(`classes: [{name: x, board: "x:{zone}:{period}", period: 1m, ops: [incr], feeds: [gift]}]`)))
		wantClasses(t, f, "gift 1m, x 1m")
	})
}

func values(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"%d"`, i))
	}
	return strings.Join(list, ", ")
}

// What another program has written, or was set when the file was another, changes nothing.
func TestBadClassesInTheHashLeaveThoseInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hash := newShared(`{"match":"a","mode":"super-hot"}`)
		f := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash}))
		must(t, f.SetClasses(t.Context(), []byte(hourClass)))
		must(t, hash.Put(t.Context(), rooms.ClassesField, strings.Replace(hourClass, "1h", "day", 1)))
		nextPoll()
		wantClasses(t, f, "hour 1h")
		if got := f.Status().Dynamic; got.BadEntries != 1 || got.Bad[0].Field != "classes" || !strings.Contains(got.Bad[0].Reason, "line 1: class hour: period can't change") || got.Entries != 1 {
			t.Errorf("status %+v", got)
		}
		must(t, hash.Put(t.Context(), rooms.ClassesField, hourClass))
		nextPoll()
		if got := f.Status().Dynamic; got.BadEntries != 0 || got.Classes != 1 {
			t.Errorf("status %+v", got)
		}
	})
}

// A class moves from the hash to the file and back, and can't change on its way.
func TestTheFileWinsOverClassesSetAtRunTime(t *testing.T) {
	path := writeFile(t, minuteClass)
	write := func(t *testing.T, text string) {
		must(t, os.WriteFile(path, []byte(text), 0o644))
		nextPoll()
	}
	synctest.Test(t, func(t *testing.T) {
		f := run(t, newFollower(roomsync.Config{File: path, Origin: &running{}, Shared: newShared()}))
		must(t, f.SetClasses(t.Context(), []byte(hourClass)))
		write(t, strings.Replace(hourClass, "1h", "day", 1))
		wantClasses(t, f, "gift 1m, hour 1h")
		if got := f.Status().File.Error; !strings.Contains(got, "rooms file: line 1: class hour: period can't change") {
			t.Errorf("error %s", got)
		}
		write(t, strings.Replace(hourClass, "super-hot", "hot", 1))
		wantClasses(t, f, "hour 1h")
		wantSuperHot(t, f)
		if got := f.Status(); got.Dynamic.Classes != 0 || got.File.Error != "" {
			t.Errorf("status %+v", got)
		}
		write(t, minuteClass)
		wantClasses(t, f, "gift 1m, hour 1h")
		write(t, `classes: [{name: other, board: "hour:{period}", period: day}]`)
		wantClasses(t, f, "gift 1m, hour 1h") // its ids can be those of hour
		if got := f.Status().File.Error; !strings.Contains(got, "class hour") {
			t.Errorf("error %s", got)
		}
	})
}

// A process that can't read Redis does not know which boards have a class.
func TestAwaitShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hash := newShared()
		hash.fail(errRedis)
		hash.fields[rooms.ClassesField] = hourClass
		f := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash}))
		known := make(chan bool, 1)
		go func() {
			f.AwaitShared(t.Context())
			known <- f.File().Class("hour") != nil
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if f.SharedRead() || len(known) != 0 {
			t.Error("read, while Redis is down")
		}
		hash.fail(nil)
		nextPoll()
		if !f.SharedRead() || !<-known {
			t.Error("the class is not known after the wait")
		}
	})
	without := newFollower(roomsync.Config{})
	must(t, without.Load())
	without.AwaitShared(t.Context())
}

func TestClassesHandler(t *testing.T) {
	hash := newShared()
	f := newFollower(roomsync.Config{File: writeFile(t, minuteClass), Origin: &running{}, Shared: hash})
	must(t, f.Load())
	for _, c := range []struct {
		method, body string
		status       int
		want         string
	}{
		{"GET", "", 200, `{"classes":[{"name":"gift","board":"gift:{zone}:{period}","period":"1m","tz":"UTC","mode":"super-hot","source":"file"}],"document":""}`},
		{"PUT", hourClass, 200, `{"name":"hour","board":"hour:{period}","period":"1h","tz":"UTC","mode":"super-hot","source":"dynamic"}],"document":"classes: [{name: hour,`},
		{"PUT", "classes: x", 400, `bad_argument body`},
		{"PUT", strings.Repeat(" ", rooms.MaxMoreClasses+1), 400, `body_too_large`},
		{"GET", "", 200, `"source":"dynamic"`},
		{"DELETE", "", 204, ``},
		{"DELETE", "", 400, `unknown_class`},
	} {
		if status, body := request(f, c.method, "/classes", c.body); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %.60s: %d %s, want %d %s", c.method, c.body, status, body, c.status, c.want)
		}
	}
	hash.fail(errRedis)
	for _, method := range []string{"PUT", "DELETE"} {
		if status, body := request(f, method, "/classes", hourClass); status != 400 || body != "origin_unavailable" {
			t.Errorf("%s while Redis is down: %d %q", method, status, body)
		}
	}
}
