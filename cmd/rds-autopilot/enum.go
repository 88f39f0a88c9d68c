// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// enum is the value of a flag with a closed set of values. It accepts them without regard to case.
type enum[T ~string] struct {
	value   *T
	allowed []string
}

// enumVar adds a flag whose present value is the default. The usage names the placeholder in backquotes.
func enumVar[T ~string](fs *pflag.FlagSet, value *T, name, shorthand, usage string, allowed ...string) {
	fs.VarP(&enum[T]{value, allowed}, name, shorthand, usage)
}

// String returns the present value.
func (e *enum[T]) String() string {
	if e.value == nil { // pflag compares the default with a zero value
		return ""
	}
	return string(*e.value)
}

// Type returns the type of the flag.
func (e *enum[T]) Type() string { return "string" }

// Set stores the allowed value that is equal to raw without regard to case.
func (e *enum[T]) Set(raw string) error {
	for _, a := range e.allowed {
		if strings.EqualFold(a, raw) {
			*e.value = T(a)
			return nil
		}
	}
	last := len(e.allowed) - 1
	return fmt.Errorf("want %s or %s", strings.Join(e.allowed[:last], ", "), e.allowed[last])
}

func (e *enum[T]) values() []string { return e.allowed }

// completeEnums lets the shell complete the values of all enums of a command and its subcommands.
func completeEnums(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if e, ok := f.Value.(interface{ values() []string }); ok {
			// The only error is a second registration.
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(e.values(), cobra.ShellCompDirectiveNoFileComp))
		}
	})
	for _, sub := range c.Commands() {
		completeEnums(sub)
	}
}
