// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// sends posts what the function makes.
func sends(body func(*harness) string) func(*harness) { return func(s *harness) { s.post(body(s)) } }

// each makes rows that differ in one text.
func each(no int, name string, texts []string, status int, res result, writes int, run func(*harness, string)) []attack {
	var rows []attack
	for _, text := range texts {
		shown := fmt.Sprintf("%.40q", text)
		rows = append(rows, attack{no, name + " " + strings.ReplaceAll(shown, "|", "¦"), func(s *harness) { run(s, text) }, status, res, writes})
	}
	return rows
}

func inner(alter func(string) string) func(*harness) {
	return func(s *harness) {
		s.post(s.alarm(m{"message": alter(alarm("alarm", ruleID, "rds039_disk_util", instance, noon()))}).json())
	}
}

func replaced(old, with string) func(*harness) {
	return inner(func(text string) string {
		if !strings.Contains(text, old) {
			panic("the alarm has no " + old)
		}
		return strings.Replace(text, old, with, 1)
	})
}

func envelopeAttacks() []attack {
	swap := func(old, with string) func(*harness) {
		return sends(func(s *harness) string { return s.alarm(nil).swap(s, old, with) })
	}
	padded := func(size int) func(*harness) string {
		return func(s *harness) string {
			body := s.alarm(nil).json()
			return body + strings.Repeat(" ", size-len(body))
		}
	}
	header := func(h ...string) func(*harness) { return func(s *harness) { s.post(s.alarm(nil).json(), h...) } }
	const bad, unread = resultMalformed, resultUnreadable
	return []attack{
		{1, "a key in capitals behind the right one", swap(`"type":"Notification"`, `"type":"Notification","Type":"x"`), 400, bad, 0},
		{4, "a number for a string", swap(`"a subject"`, "1"), 400, bad, 0},
		{4, "no signature", sends(func(s *harness) string { return s.alarm(nil).with("signature", "<none>").json() }), 400, bad, 0},
		{4, "no JSON", sends(func(*harness) string { return "hello" }), 400, bad, 0},
		{8, "a value that is no number is left out", replaced(`93.1`, `"93.1"`), 200, resultStored, 1},
		{8, "a value of 100.1 percent is left out", replaced(`93.1`, `100.1`), 200, resultStored, 1},
		{8, "NaN", replaced(`93.1`, `NaN`), 200, unread, 0},
		{8, "the alarm is of the year 2099", inner(func(string) string {
			return alarm("alarm", ruleID, "rds039_disk_util", instance, time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC))
		}), 200, unread, 0},
		{8, "the newer schema", inner(func(string) string { return `{"version":"v1","data":{}}` }), 200, unread, 0},
		{9, "a body of the limit", sends(padded(MaxBody)), 200, resultStored, 1},
		{9, "a byte more", sends(padded(MaxBody + 1)), 413, resultTooLarge, 0},
		{9, "a byte more, in chunks", func(s *harness) { s.send("POST", io.MultiReader(strings.NewReader(padded(MaxBody+1)(s)))) }, 413, resultTooLarge, 0},
		{9, "chunks without a length", func(s *harness) { s.send("POST", io.MultiReader(strings.NewReader(s.alarm(nil).json()))) }, 200, resultStored, 1},
		{9, "a length that is too small", func(s *harness) { s.rawPost(s.alarm(nil).json(), -10) }, 400, "", 0},
		{9, "a length that is too large, and no more to come", func(s *harness) { s.rawPost(s.alarm(nil).json(), 10) }, 503, "", 0},
		{9, "gzip", func(s *harness) { s.post("\x1f\x8b\x08\x00\x00\x00\x00\x00", "Content-Encoding", "gzip") }, 400, bad, 0},
		{9, "a message called a form", header("Content-Type", "multipart/form-data; boundary=x"), 200, resultStored, 1},
		{9, "PUT", func(s *harness) { s.send(http.MethodPut, strings.NewReader(s.alarm(nil).json())) }, 405, "", 0},
		{10, "a header of another type is ignored", header("X-SMN-MESSAGE-TYPE", "SubscriptionConfirmation"), 200, resultStored, 1},
		{10, "a header of another topic is ignored", header("X-SMN-TOPIC-URN", newTopic), 200, resultStored, 1},
		{11, "an unknown type", sends(func(s *harness) string { return s.alarm(m{"type": "HttpSubscriptionUserConfirm"}).json() }), 200, resultIgnored, 0},
		{11, "a known type in small letters", sends(func(s *harness) string { return s.alarm(m{"type": "notification"}).json() }), 200, resultIgnored, 0},
	}
}

// rawPost lies about the length by so many bytes, and half closes the connection.
func (s *harness) rawPost(body string, lie int) {
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /smn HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body)+lie, body)
	_ = conn.(*net.TCPConn).CloseWrite()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	s.answers = append(s.answers, answered{resp.StatusCode, strings.TrimSpace(string(text))})
}
