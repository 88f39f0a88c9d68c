// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/time/rate"
)

func foreignAttacks() []attack {
	const foreign, ignored, unread = resultForeign, resultIgnored, resultUnreadable
	signed := func(alter m) func(*harness) { return func(s *harness) { s.post(s.alarm(alter).json()) } }
	confirm := func(alter func(link string) string) func(*harness) {
		return func(s *harness) { s.post(s.confirmation(m{"subscribe_url": alter(s.link())}).json()) }
	}
	about := func(rule, metric, inst string) func(*harness) {
		return signed(m{"message": alarm("alarm", rule, metric, inst, noon())})
	}
	topic := func(region, proj string) m {
		return m{"topic_urn": "urn:smn:" + region + ":" + proj + ":autopilot_ns_db_12345678"}
	}
	rows := []attack{
		{31, "a stranger's topic, really signed", signed(m{"topic_urn": theirTopic}), 200, foreign, 0},
		{32, "our name in another project", signed(topic("eu-de", strings.Repeat("f", 32))), 200, foreign, 0},
		{32, "our name in another region", signed(topic("eu-nl", project)), 200, foreign, 0},
		{32, "our project, and a name that only begins like ours", signed(m{"topic_urn": ourTopic + "0"}), 200, foreign, 0},
		{33, "a stranger's confirmation", func(s *harness) { s.post(s.confirmation(m{"topic_urn": theirTopic}).json()) }, 200, foreign, 0},
		{34, "our own confirmation, to compare", confirm(func(l string) string { return l }), 200, resultConfirmed, 1},
		{34, "the console fails", func(s *harness) {
			s.confirms(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
			confirm(func(l string) string { return l })(s)
		}, 503, resultUnavailable, 0},
		{34, "the console has too much to do", func(s *harness) {
			s.confirms(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
			confirm(func(l string) string { return l })(s)
		}, 503, resultUnavailable, 0},
		{34, "the console knows no such token: a warning has its status", func(s *harness) {
			s.confirms(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
			confirm(func(l string) string { return l })(s)
			if w := strings.Join(s.warnings, "\n"); !strings.Contains(w, reasonConfirm) || !strings.Contains(w, "status 404") {
				s.Errorf("warned of %q", w)
			}
		}, 200, resultUnconfirmed, 1},
		{34, "the console answers without a body", func(s *harness) {
			s.confirms(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
			confirm(func(l string) string { return l })(s)
		}, 200, resultConfirmed, 1},
		{34, "a link of another topic", confirm(func(l string) string { return strings.Replace(l, ourTopic, theirTopic, 1) }), 200, ignored, 0},
		{34, "two topics", confirm(func(l string) string { return l + "&topic_urn=" + theirTopic }), 200, ignored, 0},
		{34, "a topic injected by the token", confirm(func(l string) string { return strings.Replace(l, token, token+"&topic_urn="+theirTopic, 1) }), 200, ignored, 0},
		{34, "a topic in the token, escaped", confirm(func(l string) string { return strings.Replace(l, token, token+"%26topic_urn%3Dx", 1) }), 200, resultConfirmed, 1},
		{34, "another path of the console", confirm(func(l string) string { return strings.Replace(l, confirmPath, "/smn/v2/confirm", 1) }), 200, resultConfirmed, 1},
		{34, "no topic", confirm(func(l string) string { return strings.Replace(l, "topic_urn", "topic", 1) }), 200, resultConfirmed, 1},
		{34, "a redirect is not followed", func(s *harness) {
			s.confirms(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://"+elsewhereHost+"/?token="+token, http.StatusFound)
			})
			confirm(func(l string) string { return l })(s)
		}, 200, resultUnconfirmed, 1},
		{35, "a cancellation's link is not called", func(s *harness) { s.post(s.confirmation(m{"type": "UnsubscribeConfirmation"}).json()) }, 200, resultStored, 1},
		{36, "another rule", about("al1700000000000zzzzzzzzz", "rds039_disk_util", instance), 200, ignored, 0},
		{36, "another instance", about(ruleID, "rds039_disk_util", "ffffffffffffffffffffffffffffffin01"), 200, ignored, 0},
		{36, "another metric than the rule's", about(ruleID, "rds001_cpu_util", instance), 200, ignored, 0},
		{36, "another service", replaced("SYS.RDS", "SYS.ECS"), 200, ignored, 0},
		{36, "a state that is neither alarm nor ok", signed(m{"message": alarm("insufficient_data", ruleID, "rds039_disk_util", instance, noon())}), 200, ignored, 0},
		{36, "a hundred rules that are not ours: the looks at the API server are bounded", func(s *harness) {
			s.receiver.ruleLookups.rate = rate.NewLimiter(0, 10)
			for i := range 100 {
				s.post(s.alarm(m{"message": alarm("alarm", fmt.Sprintf("al%d", i), "rds039_disk_util", instance, noon())}).json())
			}
		}, 503, resultLimited, 0},
	}
	rows = append(rows, each(34, "a link", []string{
		"https://TRAP" + confirmPath, "http://CONSOLE" + confirmPath, "https://CONSOLE@TRAP" + confirmPath, "https://user:pa55word@CONSOLE" + confirmPath,
		"https://localhost:PORT" + confirmPath, "https://CONSOLE/x/.." + confirmPath,
		"https://CONSOLE/%73mn/subscription/confirm", "https://CONSOLE//smn/subscription/confirm", "https://CONSOLE.evil.example" + confirmPath,
	}, 200, ignored, 0, func(s *harness, text string) {
		_, port, _ := strings.Cut(s.consoleHost(), ":")
		link := strings.NewReplacer("CONSOLE", s.consoleHost(), "PORT", port, "TRAP", elsewhereHost).Replace(text)
		s.post(s.confirmation(m{"subscribe_url": link + "?token=" + token + "&topic_urn=" + ourTopic}).json())
	})...)
	for _, name := range []string{"../../etc", "a b", "", strings.Repeat("a", 257)} {
		rows = append(rows, attack{37, fmt.Sprintf("an instance named %.20q", name), about(ruleID, "rds039_disk_util", name), 200, unread, 0})
	}
	for _, name := range []string{strings.ToUpper(instance), instance + "x"} {
		rows = append(rows, attack{37, fmt.Sprintf("an instance named %.40q", name), about(ruleID, "rds039_disk_util", name), 200, ignored, 0})
	}
	return append(rows,
		attack{36, "a node of our instance", about(ruleID, "rds039_disk_util", nodeID), 200, resultStored, 1},
		attack{39, "a metric name that begins like the rule's", about(ruleID, "rds039_disk_util_x", instance), 200, ignored, 0},
		attack{39, "a metric name in capitals", about(ruleID, "RDS039_DISK_UTIL", instance), 200, ignored, 0})
}
