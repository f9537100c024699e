// SPDX-License-Identifier: Apache-2.0
// gocql 1.7.0, the driver that most Go programs still use: protocols 3 and 4, snappy.
package v1

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gocql/gocql"
)

func cluster(version int, compressor gocql.Compressor) *gocql.ClusterConfig {
	hosts, port := os.Getenv("TETRAD_TEST_HOSTS"), os.Getenv("TETRAD_TEST_PORT")
	if hosts == "" {
		hosts = "127.0.0.1"
	}
	config := gocql.NewCluster(strings.Split(hosts, ",")...)
	if port != "" {
		config.Port, _ = strconv.Atoi(port)
	}
	config.ProtoVersion, config.Compressor = version, compressor
	config.Timeout, config.ConnectTimeout = 20*time.Second, 10*time.Second
	if user := os.Getenv("TETRAD_TEST_USER"); user != "" {
		config.Authenticator = gocql.PasswordAuthenticator{Username: user, Password: os.Getenv("TETRAD_TEST_PASSWORD")}
	}
	if authority := os.Getenv("TETRAD_TEST_TLS_CA"); authority != "" {
		config.SslOpts = &gocql.SslOptions{CaPath: authority, EnableHostVerification: true}
	}
	config.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(gocql.RoundRobinHostPolicy())
	return config
}

func TestGocql1(t *testing.T) {
	for _, version := range []int{0, 3, 4} {
		for name, compressor := range map[string]gocql.Compressor{"none": nil, "snappy": &gocql.SnappyCompressor{}} {
			t.Run(fmt.Sprintf("v%d_%s", version, name), func(t *testing.T) { roundTrip(t, cluster(version, compressor)) })
		}
	}
}

func roundTrip(t *testing.T, config *gocql.ClusterConfig) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	session, err := config.CreateSession()
	must(err)
	defer session.Close()
	table := fmt.Sprintf("drv_go1_%08x", rand.New(rand.NewSource(time.Now().UnixNano())).Uint32())
	must(session.Query("CREATE KEYSPACE " + table + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}").Exec())
	defer func() { must(session.Query("DROP KEYSPACE " + table).Exec()) }()
	must(session.Query("CREATE TABLE " + table + ".t (k text, c int, v list<text>, PRIMARY KEY (k, c))").Exec())
	batch := session.NewBatch(gocql.UnloggedBatch)
	for c := 0; c < 50; c++ {
		batch.Query("INSERT INTO "+table+".t (k, c, v) VALUES (?, ?, ?)", "key", c, []string{"a", strings.Repeat("b", 200)})
	}
	must(session.ExecuteBatch(batch))
	iterator := session.Query("SELECT c, v FROM "+table+".t WHERE k = ?", "key").PageSize(7).Iter()
	var c, count int
	var v []string
	for iterator.Scan(&c, &v) {
		if c != count || len(v) != 2 || len(v[1]) != 200 {
			t.Fatal(c, v)
		}
		count++
	}
	must(iterator.Close())
	if count != 50 {
		t.Fatal(count)
	}
	meta, err := session.KeyspaceMetadata(table)
	must(err)
	if meta.Tables["t"] == nil || meta.Tables["t"].Columns["v"].Kind != gocql.ColumnRegular {
		t.Fatal("the table is not in the metadata")
	}
}
