// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"strings"
)

func foreignAttacks() []attack {
	const foreign, incomplete = resultForeign, resultIncomplete
	ofTopic := func(urn string) func(*harness) {
		return func(s *harness) { s.post(s.alarm(m{"topic_urn": urn}).json()) }
	}
	// before posts an alarm while the receiver does not know the topic of the installation.
	before := func(urn string) func(*harness) {
		return func(s *harness) { s.store.lacksTopic = true; ofTopic(urn)(s) }
	}
	otherProject := strings.Replace(ourTopic, project, strings.Repeat("f", 32), 1)
	otherRegion := strings.Replace(ourTopic, "eu-de", "eu-nl", 1)
	rows := []attack{
		{31, "a stranger's topic, really signed", ofTopic(theirTopic), 200, foreign, 0},
		{32, "our name in another project", ofTopic(otherProject), 200, foreign, 0},
		{32, "our name in another region", ofTopic(otherRegion), 200, foreign, 0},
		{32, "a name that begins like ours", ofTopic(ourTopic + "0"), 200, foreign, 0},
		{32, "our topic is not known yet", before(ourTopic), 503, incomplete, 0},
		{32, "our name in another project, and our topic is not known yet", before(otherProject), 503, incomplete, 0},
		{32, "a name that ends like ours, and our topic is not known yet", before(theirTopic + "_" + topicName), 200, foreign, 0},
		{33, "a stranger's confirmation", func(s *harness) {
			s.post(s.confirmation(m{"topic_urn": theirTopic}).json())
		}, 200, foreign, 0},
	}
	return append(append(rows, linkAttacks()...), ruleAttacks()...)
}

// linkAttacks have confirmations of our topic, with unusual links and answers of the console.
func linkAttacks() []attack {
	const confirmed, ignored, unconfirmed, away = resultConfirmed, resultIgnored, resultUnconfirmed, resultUnavailable
	withLink := func(alter func(link string) string) func(*harness) {
		return func(s *harness) { s.post(s.confirmation(m{"subscribe_url": alter(s.link())}).json()) }
	}
	replaced := func(old, replacement string) func(*harness) {
		return withLink(func(l string) string { return strings.Replace(l, old, replacement, 1) })
	}
	consoleAnswers := func(status int) func(*harness) {
		return func(s *harness) {
			s.setConsoleHandler(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
			s.post(s.confirmation(nil).json())
		}
	}
	rows := []attack{
		{34, "the console answers 200", consoleAnswers(http.StatusOK), 200, confirmed, 0},
		{34, "the console answers 204", consoleAnswers(http.StatusNoContent), 200, confirmed, 0},
		{34, "the console answers 429", consoleAnswers(http.StatusTooManyRequests), 503, away, 0},
		{34, "the console answers 500", consoleAnswers(http.StatusInternalServerError), 503, away, 0},
		{34, "the console answers 404: a warning has its status", func(s *harness) {
			consoleAnswers(http.StatusNotFound)(s)
			if w := strings.Join(s.warnings, "\n"); !strings.Contains(w, reasonConfirm) || !strings.Contains(w, "status 404") {
				s.Errorf("the warnings are %q", w)
			}
		}, 200, unconfirmed, 0},
		{34, "the console redirects, which is not followed", func(s *harness) {
			s.setConsoleHandler(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://"+elsewhereHost+"/?token="+token, http.StatusFound)
			})
			s.post(s.confirmation(nil).json())
		}, 200, unconfirmed, 0},
		{34, "a link of another topic", replaced(ourTopic, theirTopic), 200, ignored, 0},
		{34, "two topics", withLink(func(l string) string { return l + "&topic_urn=" + theirTopic }), 200, ignored, 0},
		{34, "a topic injected by the token", replaced(token, token+"&topic_urn="+theirTopic), 200, ignored, 0},
		{34, "a topic in the token, escaped", replaced(token, token+"%26topic_urn%3Dx"), 200, confirmed, 0},
		{34, "another path of the console", replaced(confirmPath, "/smn/v2/confirm"), 200, confirmed, 0},
		{34, "no topic", replaced("topic_urn", "topic"), 200, confirmed, 0},
		{34, "a path with a slash at its end", replaced(confirmPath, confirmPath+"/"), 200, confirmed, 0},
		{34, "a path with an escape", replaced("/smn/", "/%73mn%2Fx/"), 200, confirmed, 0},
		{34, "a path with two slashes", replaced("/smn/", "//smn/"), 200, confirmed, 0},
		{35, "the link of a cancellation is not called", func(s *harness) {
			s.post(s.confirmation(m{"type": "UnsubscribeConfirmation"}).json())
		}, 200, ignored, 0},
	}
	for _, link := range []string{
		"https://OTHER" + confirmPath, "http://CONSOLE" + confirmPath, "https://CONSOLE@OTHER" + confirmPath,
		"https://user:pa55word@CONSOLE" + confirmPath, "https://localhost:PORT" + confirmPath,
		"https://CONSOLE.evil.example" + confirmPath,
	} {
		rows = append(rows, attack{34, fmt.Sprintf("a link %.40q", link), func(s *harness) {
			_, port, _ := strings.Cut(s.consoleHost(), ":")
			base := strings.NewReplacer("CONSOLE", s.consoleHost(), "PORT", port, "OTHER", elsewhereHost).Replace(link)
			s.post(s.confirmation(m{"subscribe_url": base + "?token=" + token + "&topic_urn=" + ourTopic}).json())
		}, 200, ignored, 0})
	}
	return rows
}

// ruleAttacks have authentic alarms of our topic about other rules, metrics and instances.
func ruleAttacks() []attack {
	const metric, ignored = "rds039_disk_util", resultIgnored
	about := func(rule, metric, inst string) func(*harness) {
		return withMessage(alarm("alarm", rule, metric, inst, noon()))
	}
	named := func(name string) func(*harness) {
		text := alarm("alarm", "al1700000000000zzzzzzzzz", metric, instance, noon())
		return withMessage(strings.Replace(text, ruleName, name, 1))
	}
	noState := alarm("insufficient_data", ruleID, metric, instance, noon())
	ofECS := strings.Replace(alarm("alarm", ruleID, metric, instance, noon()), "SYS.RDS", "SYS.ECS", 1)
	return []attack{
		{36, "another rule", about("al1700000000000zzzzzzzzz", metric, instance), 200, ignored, 0},
		{36, "another instance", about(ruleID, metric, "ffffffffffffffffffffffffffffffin01"), 200, ignored, 0},
		{36, "another metric than the rule's", about(ruleID, "rds001_cpu_util", instance), 200, ignored, 0},
		{36, "another service", withMessage(ofECS), 200, ignored, 0},
		{36, "a state that is neither alarm nor ok", withMessage(noState), 200, ignored, 0},
		{36, "another rule, with a name that is not ours", named("other"), 200, ignored, 0},
		{36, "another rule, with the name of an object that does not exist", named("autopilot_ns_gone_12345678_storage"),
			200, ignored, 0},
		{36, "a node of our instance", about(ruleID, metric, nodeID), 200, resultStored, 1},
		{37, "our instance in capitals", about(ruleID, metric, strings.ToUpper(instance)), 200, ignored, 0},
		{37, "an instance that begins like ours", about(ruleID, metric, instance+"x"), 200, ignored, 0},
		{39, "a metric that begins like the rule's", about(ruleID, metric+"_x", instance), 200, ignored, 0},
	}
}
