package rooms

import (
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"rankcache"
	"rankcache/class"
)

// Feed is a class that each increment of another one changes, too.
type Feed struct {
	Class string `json:"class"`
	// By names the group of a command that is the member of the fed board, such as guild; "": the command's member is.
	By string `json:"by,omitempty"`
	// Dims are those of the fed class's dimensions that have a group of the command as value, by the name of that.
	Dims map[string]string `json:"dims,omitempty"`
}

// String is how a feed is written.
func (f Feed) String() string {
	if f.By == "" && len(f.Dims) == 0 {
		return f.Class
	}
	return fmt.Sprintf("{class: %s, by: %s, dims: %v}", f.Class, f.By, f.Dims) // fmt sorts maps
}

// addFeed reads a class's name, or class, by and dims.
func (c *Class) addFeed(n *yaml.Node) (err error) {
	var f Feed
	if n.Kind != yaml.MappingNode {
		f.Class, err = stringScalar(n)
	} else {
		err = fields(n, map[string]func(*yaml.Node) error{"class": intoString(&f.Class), "by": intoString(&f.By), "dims": f.readDims})
	}
	if err == nil && (slices.Contains(c.FeedNames(), f.Class) || len(c.Feeds) == maxFeeds) {
		err = at(n, fmt.Errorf("feeds %.60q twice, or more than %d classes", f.Class, maxFeeds))
	}
	c.Feeds = append(c.Feeds, f)
	for _, group := range f.groups() {
		if bad := class.CheckName(group); err == nil && bad != nil {
			err = at(n, fmt.Errorf("feeds %.60q by %.60q: %w", f.Class, group, bad))
		}
	}
	return err
}

func (f *Feed) readDims(n *yaml.Node) error {
	names := make(map[string]string)
	if n.Kind != yaml.MappingNode {
		return at(n, fmt.Errorf("want a mapping of dimensions to groups"))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		group, err := stringScalar(n.Content[i+1])
		if names[n.Content[i].Value] = group; err != nil {
			return err
		}
	}
	f.Dims = names
	return nil
}

func (f *Feed) groups() []string {
	groups := slices.Sorted(maps.Values(f.Dims))
	if f.By != "" {
		groups = append(groups, f.By)
	}
	return groups
}

// FeedNames returns the names of the classes that an increment changes at once, not of those that these feed.
func (c *Class) FeedNames() []string {
	names := make([]string, len(c.Feeds))
	for i := range c.Feeds {
		names[i] = c.Feeds[i].Class
	}
	return names
}

// FeedsBy returns those of the feeds that need a group of the command.
func (c *Class) FeedsBy() (by []Feed) {
	for _, f := range c.Feeds {
		if len(f.groups()) > 0 {
			by = append(by, f)
		}
	}
	return by
}

// Fed is a class that a command of another one changes, and the whole way to it.
type Fed struct {
	*Class
	Way Feed
}

// Fed returns the classes that an increment of c changes, each followed by those that it feeds itself, each once.
func (all Classes) Fed(c *Class) []Fed {
	if len(c.Feeds) == 0 {
		return nil
	}
	return all.appendFed(nil, Fed{Class: c})
}

func (all Classes) appendFed(dst []Fed, from Fed) []Fed {
	for _, f := range from.Class.Feeds {
		fed := all.Class(f.Class)
		if fed == nil || slices.ContainsFunc(dst, func(before Fed) bool { return before.Class == fed }) {
			continue
		}
		next := Fed{fed, f.after(from, fed)}
		dst = all.appendFed(append(dst, next), next)
	}
	return dst
}

// after returns the way to a class by way of another one, which a feed of that leads to.
func (f Feed) after(from Fed, to *Class) Feed {
	if f.By == "" {
		f.By = from.Way.By
	}
	dims := maps.Clone(f.Dims)
	for _, name := range to.Dimensions() {
		if group := from.Way.Dims[name]; group != "" && dims[name] == "" {
			if dims == nil {
				dims = make(map[string]string)
			}
			dims[name] = group
		}
	}
	f.Dims = dims
	return f
}

// Of returns member and dimensions of what a command feeds, given its board's; false if it lacks a needed group.
func (f *Fed) Of(member string, board map[string]string, groups map[string]string) (fed string, dims map[string]string, ok bool) {
	if fed = member; f.Way.By != "" {
		fed = groups[f.Way.By]
	}
	dims = make(map[string]string)
	for _, name := range f.Dimensions() {
		value := board[name]
		if group := f.Way.Dims[name]; group != "" {
			value = groups[group]
		}
		if dims[name] = value; value == "" {
			return "", nil, false
		}
	}
	return fed, dims, fed != ""
}

// checkWays checks that a class is fed in one way only, and notes the groups of c's commands in a copy.
func (all Classes) checkWays(i int) error {
	c := all[i]
	var groups []string
	for _, to := range all.Fed(c) {
		groups = append(groups, to.Way.groups()...)
		for _, from := range append(all.Fed(c), Fed{Class: c}) {
			for _, f := range from.Class.Feeds {
				if way := f.after(from, to.Class); f.Class == to.Name() && (way.By != to.Way.By || !maps.Equal(way.Dims, to.Way.Dims)) {
					return c.wrong(fmt.Errorf("feeds %s in two ways, by way of %s with other members or dimensions: want one", to.Name(), from.Name()))
				}
			}
		}
	}
	if len(groups) > 0 {
		slices.Sort(groups)
		with := *c
		with.By = slices.Compact(groups)
		all[i] = &with
	}
	return nil
}

// CheckGroups returns why a command of the class can't have groups, or nil.
func (all Classes) CheckGroups(c *Class, groups map[string]string) error {
	for name := range groups {
		if !slices.Contains(c.By, name) {
			return fmt.Errorf("class %s has no group %.40q: its feeds are by %q", c.Name(), name, c.By)
		}
	}
	for _, f := range all.Fed(c) {
		if group, given := groups[f.Way.By]; given {
			if err := rankcache.CheckMember(group); err != nil {
				return fmt.Errorf("%s: %w", f.Way.By, err)
			}
		}
		for _, name := range f.Way.Dims {
			if group, given := groups[name]; given {
				if err := class.CheckDimension(group); err != nil {
					return fmt.Errorf("%s is %.80q: %w", name, group, err)
				}
			}
		}
	}
	return nil
}
