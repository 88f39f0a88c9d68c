// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"strings"
	"time"
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
			if !strings.Contains(strings.Join(s.warnings, " "), reasonConfirm) {
				s.Errorf("the warnings are %q", s.warnings)
			}
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

// event returns the body of an authentic alarm of that time with a message id of its own.
func event(s *harness, n int, status string, at time.Time) string {
	return s.alarm(m{
		"message_id": fmt.Sprintf("%032x", n), "timestamp": at.UTC().Format("2006-01-02T15:04:05Z"),
		"message": alarm(status, ruleID, "rds039_disk_util", instance, at),
	}).json()
}

func replayAttacks() []attack {
	const duplicate, stale, stored, expired = resultDuplicate, resultStale, resultStored, resultExpired
	stamped := func(text string) func(*harness) {
		return func(s *harness) { s.post(s.alarm(m{"timestamp": text}).json()) }
	}
	ahead := func(d time.Duration) func(*harness) { return stamped(noon().Add(d).Format("2006-01-02T15:04:05Z")) }
	return []attack{
		{40, "the same message twice", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.post(s.alarm(nil).json())
		}, 200, duplicate, 1},
		{40, "the same confirmation twice", func(s *harness) {
			s.post(s.confirmation(nil).json())
			s.post(s.confirmation(nil).json())
		}, 200, resultConfirmed, 0},
		{41, "the same alarm with a new message id", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.post(s.alarm(m{"message_id": strings.Repeat("0", 32)}).json())
		}, 200, stale, 1},
		{45, "the same message after a restart", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.start()
			s.post(s.alarm(nil).json())
		}, 200, duplicate, 1},
		{46, "repeated after a week", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.setNow(noon().Add(7 * 24 * time.Hour))
			s.post(s.alarm(nil).json())
		}, 403, expired, 1},
		{46, "repeated within the hour, after a newer one", func(s *harness) {
			recorded := event(s, 1, "alarm", noon())
			s.post(recorded)
			s.post(event(s, 2, "ok", noon().Add(time.Minute)))
			s.setNow(noon().Add(30 * time.Minute))
			s.post(recorded)
		}, 200, stale, 2},
		{47, "4 minutes ahead", ahead(4 * time.Minute), 200, stored, 1},
		{47, "6 minutes ahead", ahead(6 * time.Minute), 403, expired, 0},
		{47, "59 minutes old", ahead(-59 * time.Minute), 200, stored, 1},
		{47, "61 minutes old", ahead(-61 * time.Minute), 403, expired, 0},
		{47, "year 0", stamped("0000-01-01T00:00:00Z"), 403, expired, 0},
		{47, "year 9999", stamped("9999-12-31T23:59:59Z"), 403, expired, 0},
		{48, "ok, then the alarm before it", func(s *harness) {
			s.post(event(s, 1, "ok", noon()))
			s.post(event(s, 2, "alarm", noon().Add(-time.Minute)))
		}, 200, stale, 1},
		{49, "the alarm fires each minute: one signal is kept", func(s *harness) {
			for i := range 20 {
				at := noon().Add(time.Duration(i) * time.Minute)
				s.setNow(at)
				s.post(event(s, i, "alarm", at))
			}
			if n := len(s.store.stored.Status.Intake.Signals); n != 1 {
				s.Errorf("%d signals are kept, want 1", n)
			}
		}, 200, stored, 20},
	}
}
