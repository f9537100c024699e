// SPDX-License-Identifier: Apache-2.0
// What the tests of gocql (Apache's v2) share: sessions and a keyspace that goes at the end.
package drivers

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

var (
	hosts    = strings.Split(environment("TETRAD_TEST_HOSTS", "127.0.0.1"), ",")
	keyspace = fmt.Sprintf("drv_go_%08x", rand.New(rand.NewSource(time.Now().UnixNano())).Uint32())
	shared   *gocql.Session
)

func environment(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

func configuration() *gocql.ClusterConfig {
	config := gocql.NewCluster(hosts...)
	config.Port, _ = strconv.Atoi(environment("TETRAD_TEST_PORT", "9042"))
	config.Timeout = 20 * time.Second
	config.ConnectTimeout = 10 * time.Second
	config.Consistency = gocql.Quorum
	if user := os.Getenv("TETRAD_TEST_USER"); user != "" {
		config.Authenticator = gocql.PasswordAuthenticator{Username: user, Password: os.Getenv("TETRAD_TEST_PASSWORD")}
	}
	if authority := os.Getenv("TETRAD_TEST_TLS_CA"); authority != "" {
		config.SslOpts = &gocql.SslOptions{CaPath: authority, EnableHostVerification: true}
	}
	config.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(gocql.RoundRobinHostPolicy())
	return config
}

func open(t testing.TB, change func(*gocql.ClusterConfig)) *gocql.Session {
	config := configuration()
	config.Keyspace = keyspace
	if change != nil {
		change(config)
	}
	session, err := config.CreateSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t testing.TB, session *gocql.Session, statement string, values ...interface{}) {
	t.Helper()
	if err := session.Query(statement, values...).Exec(); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func eventually(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

func TestMain(m *testing.M) {
	var err error
	shared, err = configuration().CreateSession()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	factor := len(hosts)
	if factor > 4 {
		factor = 4
	}
	create := fmt.Sprintf("CREATE KEYSPACE %s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': %d}", keyspace, factor)
	if err = shared.Query(create).Exec(); err == nil {
		shared.Close()
		config := configuration()
		config.Keyspace = keyspace
		shared, err = config.CreateSession()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = shared.Query("DROP KEYSPACE " + keyspace).Exec()
	shared.Close()
	os.Exit(code)
}
