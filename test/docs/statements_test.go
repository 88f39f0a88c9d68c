// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/level"
	"github.com/mcsps/rds-autopilot/test/world"
)

// TestTheStatementsNameTheCulprit stages each cause in a PostgreSQL, and runs the statements of its page as a user who has
// only the role pg_monitor. The pages refer to the first row of a result, so most patterns begin there.
func TestTheStatementsNameTheCulprit(t *testing.T) {
	level.Long(t)
	db := newPostgres(t)
	db.must(t, "owner", "postgres", "CREATE ROLE app LOGIN; ALTER ROLE app SET pgaudit.log = 'all'; CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher")
	db.must(t, "owner", "postgres", "CREATE DATABASE shop OWNER app")
	// The slot comes first, because its creation waits for the end of each transaction that writes.
	db.must(t, "owner", "shop", "SELECT pg_create_logical_replication_slot('debezium', 'test_decoding')")
	db.must(t, "owner", "shop", "GRANT CREATE ON SCHEMA public TO app")
	db.must(t, "app", "shop", "CREATE TABLE small (i int); CREATE TABLE orders AS SELECT i AS id, repeat('x', 100) AS pad FROM generate_series(1, 100000) i")
	db.hold(t, "nightly-report", "BEGIN; INSERT INTO small VALUES (1);\n")
	db.until(t, "watcher", "shop", "SELECT application_name FROM pg_stat_activity WHERE state = 'idle in transaction'", "nightly-report")
	db.must(t, "app", "shop", "BEGIN; INSERT INTO small VALUES (2); PREPARE TRANSACTION 'transfer'")
	db.must(t, "app", "shop", "DELETE FROM orders WHERE id <= 50000")
	db.hold(t, "big-sort", "BEGIN; SET work_mem = '64kB'; DECLARE c CURSOR FOR SELECT * FROM orders ORDER BY pad, id; FETCH c; SELECT pg_sleep(600);\n")
	for cause, want := range map[string][]string{
		"AuditLog":        {``, `\|app\|{pgaudit.log=all}`},
		"Data":            {`^shop\|\d+ MB\n`, `^orders\|\d+ MB\|`},
		"LongTransaction": {`^\d+\|app\|nightly-report\|\|idle in transaction\|`, `^transfer\|.*\|app\|shop\n`, `^orders\|50000\|`},
		"ReplicationSlot": {`^debezium\|logical\|test_decoding\|shop\|f\|\|.*\|\d+ MB\n`, `^$`},
		"TempFiles":       {`^\d+\|shop\|app\|big-sort\|\d+ kB\|`, `^\d+\|shop\|app\|big-sort\|`, `(?m)^shop\|\d+\|`},
		"Unknown":         {`^\d+\|\d+ MB\n`, `^shop\|\d+ MB\n`},
		"WAL":             {`^0\|`, `(?m)^max_wal_size\|\d+\|MB$`, `^orders\|100000\|0\|50000\n`},
	} {
		found := statements(read(t, "docs/runbooks/causes/"+cause+".md"))
		if len(found) != len(want) {
			t.Errorf("%s has %d statements for PostgreSQL, and this test expects %d", cause, len(found), len(want))
			continue
		}
		for i, statement := range found {
			db.until(t, "watcher", "shop", statement, want[i])
		}
	}
}

// statements returns the PostgreSQL statements of a page. The line before a block names another engine.
func statements(page string) (found []string) {
	for _, m := range regexp.MustCompile("(?s)([^\n]*)\n\n```sql\n(.*?);\n```").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(m[1], "MySQL") && !strings.Contains(m[1], "SQL Server") {
			found = append(found, strings.Split(m[2], ";\n")...)
		}
	}
	return found
}

// postgres is a server of this test. It listens on a socket in its folder only.
type postgres struct {
	bin, dir string
	as       *syscall.Credential // nil means the user of this process
}

func newPostgres(t *testing.T) *postgres {
	t.Helper()
	db := &postgres{}
	debian, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), debian...) {
		_, noServer := os.Stat(filepath.Join(dir, "initdb"))
		if _, noClient := os.Stat(filepath.Join(dir, "psql")); noServer == nil && noClient == nil {
			db.bin = dir
		}
	}
	if db.bin == "" || err != nil {
		t.Skip("left out, because postgres is not installed (Debian: postgresql)")
	}
	// Another user cannot enter the folder of t.TempDir, and its path may be too long for a socket.
	if db.dir, err = os.MkdirTemp("", "postgres"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(db.dir) }) // its parent is a folder of temporary files
	if os.Geteuid() == 0 {
		db.dropRoot(t)
	}
	data := filepath.Join(db.dir, "data")
	if out, err := db.command(t, "initdb", "--pgdata", data, "--username", "owner", "--auth", "trust", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := db.command(t, "postgres", "-D", data, "-k", db.dir, "-c", "listen_addresses=", "-c", "wal_level=logical",
		"-c", "max_prepared_transactions=1", "-c", "autovacuum=off", "-c", "fsync=off")
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGQUIT) } // stops at once, and removes shared memory
	db.start(t, server)
	db.until(t, "owner", "postgres", "SELECT 1", "^1\n")
	return db
}

// dropRoot gives the server to the user postgres, because PostgreSQL refuses to run as root.
func (db *postgres) dropRoot(t *testing.T) {
	t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Skip("left out, because postgres does not run as root, and there is no user postgres")
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 31) // a number wherever there is a uid 0
	gid, _ := strconv.ParseUint(u.Gid, 10, 31)
	db.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	if err := os.Chown(db.dir, int(uid), int(gid)); err != nil {
		t.Fatal(err)
	}
}

// command is a program of PostgreSQL. The end of the test kills it.
func (db *postgres) command(t *testing.T, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), filepath.Join(db.bin, name), args...)
	cmd.Dir, cmd.Env = db.dir, []string{"LC_ALL=C", "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: db.as}
	return cmd
}

// start leaves a command running until the end of the test.
func (db *postgres) start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the end of the test stops it, which is an error
}

func (db *postgres) psql(t *testing.T, role, database string, args ...string) *exec.Cmd {
	return db.command(t, "psql", append([]string{"-XqAt", "-v", "ON_ERROR_STOP=1", "-h", db.dir, "-U", role, "-d", database}, args...)...)
}

// hold runs a script in a session of the application, and keeps the session open.
func (db *postgres) hold(t *testing.T, application, script string) {
	t.Helper()
	cmd := db.psql(t, "app", "shop")
	cmd.Env = append(cmd.Env, "PGAPPNAME="+application)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	db.start(t, cmd)
	if _, err := stdin.Write([]byte(script)); err != nil {
		t.Fatal(err)
	}
}

// must runs a script, and fails the test if the script fails.
func (db *postgres) must(t *testing.T, role, database, script string) {
	t.Helper()
	if out, err := db.psql(t, role, database, "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// until repeats a statement until its output matches, because PostgreSQL counts with a delay.
func (db *postgres) until(t *testing.T, role, database, statement, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out []byte
	err := world.Eventually(ctx, "it answers "+want, func(context.Context) (bool, error) {
		var err error
		out, err = db.psql(t, role, database, "-c", statement).CombinedOutput()
		return err == nil && regexp.MustCompile(want).Match(out), err
	})
	if err != nil {
		t.Fatalf("%s\n%s\n%v", statement, out, err)
	}
}
