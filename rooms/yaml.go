package rooms

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// The file is parsed from YAML nodes, which have line and notation: an unquoted 1_2_3 is an error, not 123.

// fields calls the function of each key of a mapping with its value.
func fields(n *yaml.Node, known map[string]func(*yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return at(n, errors.New("want a mapping"))
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		read, ok := known[key.Value]
		if !ok || seen[key.Value] {
			return at(key, fmt.Errorf("unknown or repeated key %.40q", key.Value))
		}
		seen[key.Value] = true
		if err := read(n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// each calls read with every item of a list.
func each(n *yaml.Node, read func(*yaml.Node) error) error {
	if n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return at(n, errors.New("want a list"))
	}
	for _, item := range n.Content {
		if err := read(item); err != nil {
			return err
		}
	}
	return nil
}

// stringScalar returns a scalar that is written as a string.
func stringScalar(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		return "", at(n, fmt.Errorf("want a string in quotes, such as %q", n.Value))
	}
	return n.Value, nil
}

// asString calls read with a scalar that is written as a string, and tells the line of its error.
func asString(read func(string) error) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		s, err := stringScalar(n)
		if err != nil {
			return err
		}
		return at(n, read(s))
	}
}

func intoString(to *string) func(*yaml.Node) error {
	return asString(func(s string) error { *to = s; return nil })
}

func mode(to *Mode) func(*yaml.Node) error {
	return asString(func(s string) (err error) { *to, err = ParseMode(s); return err })
}

func duration(to *time.Duration, least, most time.Duration) func(*yaml.Node) error {
	return asString(func(s string) (err error) {
		if *to, err = time.ParseDuration(s); err != nil || *to < least || *to > most {
			return fmt.Errorf("%.40q: want a duration from %v to %v, such as 5s", s, least, most)
		}
		return nil
	})
}

func integer(to *int, least, most int) func(*yaml.Node) error {
	return func(n *yaml.Node) (err error) {
		if *to, err = strconv.Atoi(n.Value); err != nil || n.Tag != "!!int" || *to < least || *to > most {
			return at(n, fmt.Errorf("%.40q: want an integer from %d to %d", n.Value, least, most))
		}
		return nil
	}
}

func boolean(to *bool) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		*to = n.Value == "true"
		if n.Tag != "!!bool" || !*to && n.Value != "false" {
			return at(n, fmt.Errorf("%.40q: want true or false", n.Value))
		}
		return nil
	}
}

func oneOf[T ~string](to *T, known ...T) func(*yaml.Node) error {
	return asString(func(s string) error {
		if *to = T(s); !slices.Contains(known, *to) {
			return fmt.Errorf("%.40q: want one of %v", s, known)
		}
		return nil
	})
}

func at(n *yaml.Node, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("line %d: %w", n.Line, err)
}
