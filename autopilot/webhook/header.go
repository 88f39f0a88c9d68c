package webhook

import (
	"fmt"
	"net/http"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
)

// agree checks the headers that repeat fields of the message. They are not signed and not read, and may be absent; but
// whoever routes or logs by them must not be told another story than the body's.
func agree(header http.Header, e smn.Envelope) error {
	for _, h := range []struct{ name, body string }{
		{"X-Smn-Message-Type", string(e.Type)},
		{"X-Smn-Message-Id", e.MessageID},
		{"X-Smn-Topic-Urn", e.TopicURN},
	} {
		said := header.Values(h.name)
		switch {
		case len(said) > 1:
			return fmt.Errorf("%w: the header %s more than once", smn.ErrMalformed, h.name)
		case len(said) == 1 && said[0] != h.body && (h.body != "" || e.Type.Known()): // of an unknown type only the type is read
			return fmt.Errorf("%w: the header %s says something else than the body", smn.ErrMalformed, h.name)
		}
	}
	return nil
}
