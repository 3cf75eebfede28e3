package resp

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parseAll parses p as it comes in pieces of the lengths that cut returns.
func parseAll(p []byte, cut func(left int) int) (commands [][]string, err error) {
	var a parser
	var in []byte
	for {
		cmd, n, err := a.next(in)
		switch {
		case err != nil:
			return commands, err
		case n > 0:
			var words []string
			for _, arg := range cmd.args {
				words = append(words, string(arg))
			}
			if commands = append(commands, words); !bytes.Equal(cmd.raw, in[:n]) {
				panic("raw is not what was parsed")
			}
			in = bytes.Clone(in[n:])
		case len(p) == 0:
			return commands, nil
		default:
			n := cut(len(p))
			in, p = append(in, p[:n]...), p[n:]
		}
	}
}

func whole(left int) int { return left }

func TestParser(t *testing.T) {
	for in, want := range map[string][][]string{
		"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n":           {{"GET", "k"}},
		"*1\r\n$0\r\n\r\n":                         {{""}},
		"*1\r\n$4\r\na\r\nb\r\n":                   {{"a\r\nb"}},
		"*0\r\n*-1\r\nPING\r\n":                    {nil, nil, {"PING"}},
		"PING\nECHO hi\r\n\r\n":                    {{"PING"}, {"ECHO", "hi"}, nil},
		"  set  \t'a b' \"c\\x41\\n\\\"\" d'\r\n ": nil,
		"set 'a\\'b' \"c\\x41\\n\\\"\" d\r\n":      {{"set", "a'b", "cA\n\"", "d"}},
		"*2\r\n$3\r\nGET\r\n$1\r\n":                nil,
	} {
		got, err := parseAll([]byte(in), whole)
		if diff := cmp.Diff(want, got); diff != "" && err == nil {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func TestMalformedFrames(t *testing.T) {
	long := strings.Repeat("1", maxLine)
	for in, want := range map[string]string{
		"*x\r\n":                          "invalid multibulk length",
		"*2000000\r\n":                    "invalid multibulk length",
		"*1\r\nGET\r\n":                   "expected '$', got 'G'",
		"*1\r\n\r\n":                      "expected '$', got ' '",
		"*1\r\n$x\r\n":                    "invalid bulk length",
		"*1\r\n$-1\r\n":                   "invalid bulk length",
		"*1\r\n$67108865\r\n":             "invalid bulk length",
		"*1\r\n$99999999999999999999\r\n": "invalid bulk length",
		"*" + long:                        "too big mbulk count string",
		"*1\r\n$" + long:                  "too big bulk count string",
		long + "1":                        "too big inline request",
		"set \"a\r\n":                     "unbalanced quotes in request",
		"set 'a'b\r\n":                    "unbalanced quotes in request",
	} {
		if _, err := parseAll([]byte(in), whole); err == nil || err.Error() != "Protocol error: "+want {
			t.Errorf("%.40q: %v, want %s", in, err, want)
		}
	}
}

// FuzzParser: how the bytes are cut makes no difference.
func FuzzParser(f *testing.F) {
	for _, in := range []string{"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*0\r\n", "set 'a b' \"c\\x41\"\r\nPING\n", "*1\r\n$4\r\nab", "*-1\r\n*1\r\nx"} {
		f.Add([]byte(in), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		want, wantErr := parseAll(in, whole)
		got, err := parseAll(in, func(left int) int { return 1 + r.IntN(left) })
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (wantErr == nil) {
			t.Errorf("errors %v and %v; %s", wantErr, err, diff)
		}
	})
}

func TestRepliesAreCounted(t *testing.T) {
	for in, want := range map[string]int{
		"+OK\r\n:1\r\n$-1\r\n*-1\r\n_\r\n,1.5\r\n#t\r\n(12\r\n": 8,
		"$5\r\na\r\nbc\r\n": 1, "=5\r\ntxt:a\r\n": 1, "!3\r\nERR\r\n": 1,
		"*2\r\n*0\r\n*2\r\n$1\r\na\r\n:1\r\n": 1, "%1\r\n+a\r\n~1\r\n+b\r\n": 1,
		">2\r\n+message\r\n$1\r\na\r\n+OK\r\n": 1, "|1\r\n+ttl\r\n:5\r\n$1\r\na\r\n": 1,
		"*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:1\r\n:2\r\n": 1, ">0\r\n": 0,
	} {
		for size := 1; size <= len(in); size++ {
			r := replies{want: want}
			for p := []byte(in); len(p) > 0; {
				n := min(size, len(p))
				if err := r.scan(p[:n]); err != nil {
					t.Fatalf("%q: %v", in, err)
				}
				p = p[n:]
			}
			if r.want != 0 || len(r.nests) > 0 {
				t.Errorf("%q in pieces of %d: %d replies are missing", in, size, r.want)
			}
		}
	}
}

func TestNoReplies(t *testing.T) {
	for _, in := range []string{"x\r\n", "\r\n", "$x\r\n", "*99999999999\r\n", "+OK\r\n+OK\r\n", strings.Repeat("*1\r\n", maxNesting+1)} {
		if err := (&replies{want: 1}).scan([]byte(in)); err == nil {
			t.Errorf("%.40q is taken for replies", in)
		}
	}
}

// FuzzReplies: how the bytes are cut makes no difference, and no bytes panic.
func FuzzReplies(f *testing.F) {
	f.Add([]byte("*2\r\n$1\r\na\r\n:1\r\n>1\r\n+x\r\n"), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		one, cut := replies{want: 3}, replies{want: 3}
		wantErr := one.scan(in)
		var err error
		for p := in; len(p) > 0 && err == nil; {
			n := min(int(size)+1, len(p))
			err, p = cut.scan(p[:n]), p[n:]
		}
		if (err == nil) != (wantErr == nil) || err == nil && one.want != cut.want {
			t.Errorf("whole: %d, %v; cut: %d, %v", one.want, wantErr, cut.want, err)
		}
	})
}
