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
func each(no int, class, name string, texts []string, status int, res result, writes int, run func(*harness, string)) []attack {
	var rows []attack
	for _, text := range texts {
		shown := fmt.Sprintf("%.40q", text)
		rows = append(rows, attack{no, class, name + " " + strings.ReplaceAll(shown, "|", "¦"), func(s *harness) { run(s, text) }, status, res, writes})
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
	raw := func(body string) func(*harness) { return sends(func(*harness) string { return body }) }
	around := func(before, after string) func(*harness) {
		return sends(func(s *harness) string { return before + s.alarm(nil).json() + after })
	}
	padded := func(size int) func(*harness) string {
		return func(s *harness) string {
			body := s.alarm(nil).json()
			return body + strings.Repeat(" ", size-len(body))
		}
	}
	header := func(h ...string) func(*harness) { return func(s *harness) { s.post(s.alarm(nil).json(), h...) } }
	const bad, unread = resultMalformed, resultUnreadable
	rows := []attack{
		{1, "A", "a key in capitals before the right one", swap(`"type":`, `"TYPE":"x","type":`), 400, bad, 0},
		{1, "A", "a key in capitals behind the right one", swap(`"type":"Notification"`, `"type":"Notification","Type":"x"`), 400, bad, 0},
		{1, "A", "only a key in capitals", swap(`"type":`, `"TYPE":`), 400, bad, 0},
		{2, "A", "a long s in message", swap(`"type":`, `"meſſage":"x","type":`), 400, bad, 0},
		{2, "A", "a long s in subscribe_url", swap(`"type":`, `"ſubscribe_url":"x","type":`), 400, bad, 0},
		{2, "A", "a long s escaped", swap(`"type":`, `"me\u017f\u017fage":"x","type":`), 400, bad, 0},
		{2, "A", "topic_urn in capitals", swap(`"topic_urn":`, `"Topic_URN":"x","topic_urn":`), 400, bad, 0},
		{2, "A", "a Kelvin sign in token, which is no key of ours", swap(`"type":`, `"to\u212aen":"x","type":`), 200, resultStored, 1},
		{3, "A", "a key twice", swap(`"type":`, `"type":"Notification","type":`), 400, bad, 0},
		{3, "A", "a key twice, once escaped", swap(`"type":`, `"t\u0079pe":"Notification","type":`), 400, bad, 0},
		{5, "A", "a byte order mark", around("\xef\xbb\xbf", ""), 400, bad, 0},
		{5, "A", "text in front", around("x", ""), 400, bad, 0},
		{5, "A", "text behind", around("", "x"), 400, bad, 0},
		{5, "A", "a second value", around("", "{}"), 400, bad, 0},
		{6, "A", "bad UTF-8", swap("a subject", "a \xff subject"), 400, bad, 0},
		{6, "A", "half a surrogate pair", swap("a subject", `\ud800`), 400, bad, 0},
		{6, "A", "NUL in the id", swap("d84bd6629ef04513", `d84bd6629ef0451\u0000`), 400, bad, 0},
		{6, "A", "NUL in the message, signed so", inner(func(string) string { return "a\x00b" }), 200, unread, 0},
		{6, "A", "U+2028 in the topic", swap(ourTopic, ourTopic+`\u2028`), 400, bad, 0},
		{6, "A", "U+2028 in the subject, signed so", sends(func(s *harness) string { return s.alarm(m{"subject": "a\u2028b"}).json() }), 200, resultStored, 1},
		{7, "A", "10001 deep in an unknown field", swap(`"type":`, `"x":`+strings.Repeat("[", 10001)+strings.Repeat("]", 10001)+`,"type":`), 400, bad, 0},
		{7, "A", "9 deep in an unknown field", swap(`"type":`, `"x":`+strings.Repeat("[", 9)+strings.Repeat("]", 9)+`,"type":`), 400, bad, 0},
		{7, "A", "10001 deep in the message", replaced(`"message_type"`, `"x":`+strings.Repeat("[", 10001)+strings.Repeat("]", 10001)+`,"message_type"`), 200, unread, 0},
		{8, "A", "a time beyond int64", replaced(`"time":`, `"time":99999999999999999999,"x":`), 200, unread, 0},
		{8, "A", "a value of 1e308 is left out", replaced(`93.1`, `1e308`), 200, resultStored, 1},
		{8, "A", "a value of 100.1 percent is left out", replaced(`93.1`, `100.1`), 200, resultStored, 1},
		{8, "A", "a value of −0, which is 0", replaced(`93.1`, `-0`), 200, resultStored, 1},
		{8, "A", "NaN", replaced(`93.1`, `NaN`), 200, unread, 0},
		{8, "A", "NaN as text is left out", replaced(`93.1`, `"NaN"`), 200, resultStored, 1},
		{8, "A", "a string for a number is left out", replaced(`93.1`, `"93.1"`), 200, resultStored, 1},
		{8, "A", "no rule", replaced(`"alarm_id"`, `"alarm"`), 200, unread, 0},
		{8, "A", "another unit, which is a text for people", replaced(`"message_type"`, `"unit":"GB","message_type"`), 200, resultStored, 1},
		{8, "A", "the alarm is of the year 2099", inner(func(string) string {
			return alarm("alarm", ruleID, "rds039_disk_util", instance, time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC))
		}), 200, unread, 0},
		{8, "A", "the newer schema", inner(func(string) string { return `{"version":"v1","data":{}}` }), 200, unread, 0},
		{9, "A", "a body of the limit", sends(padded(MaxBody)), 200, resultStored, 1},
		{9, "A", "a byte less", sends(padded(MaxBody - 1)), 200, resultStored, 1},
		{9, "A", "a byte more", sends(padded(MaxBody + 1)), 413, resultTooLarge, 0},
		{9, "A", "a byte more, in chunks", func(s *harness) { s.send("POST", io.MultiReader(strings.NewReader(padded(MaxBody+1)(s)))) }, 413, resultTooLarge, 0},
		{9, "A", "chunks without a length", func(s *harness) { s.send("POST", io.MultiReader(strings.NewReader(s.alarm(nil).json()))) }, 200, resultStored, 1},
		{9, "A", "a length that is too small", func(s *harness) { s.rawPost(s.alarm(nil).json(), -10) }, 400, "", 0},
		{9, "A", "a length that is too large, and no more to come", func(s *harness) { s.rawPost(s.alarm(nil).json(), 10) }, 503, "", 0},
		{9, "A", "gzip", func(s *harness) { s.post("\x1f\x8b\x08\x00\x00\x00\x00\x00", "Content-Encoding", "gzip") }, 400, bad, 0},
		{9, "A", "a form", func(s *harness) { s.post("type=Notification", "Content-Type", "application/x-www-form-urlencoded") }, 400, bad, 0},
		{9, "A", "a message called a form", header("Content-Type", "multipart/form-data; boundary=x"), 200, resultStored, 1},
		{9, "A", "GET", func(s *harness) { s.send(http.MethodGet, nil) }, 405, "", 0},
		{9, "A", "PUT", func(s *harness) { s.send(http.MethodPut, strings.NewReader(s.alarm(nil).json())) }, 405, "", 0},
		{9, "A", "HEAD", func(s *harness) { s.send(http.MethodHead, nil) }, 405, "", 0},
		{10, "A", "headers that agree", header("X-SMN-MESSAGE-TYPE", "Notification", "X-SMN-MESSAGE-ID", "d84bd6629ef04513ad2e37bffd6e17cb", "X-SMN-TOPIC-URN", ourTopic), 200, resultStored, 1},
		{10, "A", "no headers", header(), 200, resultStored, 1},
		{10, "A", "another type: headers are not looked at", header("X-SMN-MESSAGE-TYPE", "SubscriptionConfirmation"), 200, resultStored, 1},
		{10, "A", "another id: headers are not looked at", header("X-SMN-MESSAGE-ID", strings.Repeat("0", 32)), 200, resultStored, 1},
		{10, "A", "another topic: headers are not looked at", header("X-SMN-TOPIC-URN", newTopic), 200, resultStored, 1},
		{10, "A", "a header twice: headers are not looked at", header("X-SMN-MESSAGE-TYPE", "Notification", "X-SMN-MESSAGE-TYPE", "Notification"), 200, resultStored, 1},
		{11, "A", "an unknown type", sends(func(s *harness) string { return s.alarm(m{"type": "HttpSubscriptionUserConfirm"}).json() }), 200, resultIgnored, 0},
		{11, "A", "a known type in small letters", sends(func(s *harness) string { return s.alarm(m{"type": "notification"}).json() }), 200, resultIgnored, 0},
	}
	rows = append(rows, each(4, "A", "for a string", []string{"1", "[]", "{}", "true"}, 400, bad, 0, func(s *harness, v string) {
		s.post(s.alarm(nil).swap(s, `"a subject"`, v))
	})...)
	return append(rows, each(4, "A", "for the whole body", []string{"null", "[]", `"x"`, "", "{}"}, 400, bad, 0, func(s *harness, v string) { raw(v)(s) })...)
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
