// SPDX-License-Identifier: Apache-2.0
package zipkin2.storage.cassandra;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import zipkin2.DependencyLink;

/**
 * Zipkin's storage on the cluster of TETRAD_HOST, and what its tests do besides. In Zipkin's package, which hides the session of a storage
 * and the writes that it leaves out because it has just sent them.
 *
 * <p>Zipkin writes and reads at LOCAL_ONE and waits a while between them; here it reads at LOCAL_QUORUM what it has written.
 */
final class TetradStorage {
  private static final String HOST = System.getenv().getOrDefault("TETRAD_HOST", "127.0.0.1");
  private static final String DATA_CENTER = System.getenv().getOrDefault("TETRAD_DC", "datacenter1");

  private TetradStorage() {}

  static CassandraStorage.Builder builder(String keyspace) {
    return CassandraStorage.newBuilder()
        .contactPoints(HOST)
        .localDc(DATA_CENTER)
        .keyspace(keyspace)
        .sessionFactory(storage -> connect());
  }

  static CqlSession connect() {
    return CqlSession.builder()
        .addContactPoint(new InetSocketAddress(HOST, 9042))
        .withLocalDatacenter(DATA_CENTER)
        .withConfigLoader(
            DriverConfigLoader.programmaticBuilder()
                .withString(DefaultDriverOption.REQUEST_CONSISTENCY, "LOCAL_QUORUM")
                .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(20))
                .withBoolean(DefaultDriverOption.REQUEST_DEFAULT_IDEMPOTENCE, true)
                .build())
        .build();
  }

  /** Fails where the kit itself would leave its tests out: then nothing would be shown. */
  static void mustServe(CassandraStorage storage) {
    var check = storage.check();
    if (!check.ok()) {
      throw new AssertionError("the storage does not open", check.error());
    }
  }

  static void drop(String keyspace) {
    try (CqlSession session = connect()) {
      session.execute("DROP KEYSPACE IF EXISTS " + keyspace);
    }
  }

  /** Empties the tables there are: those of searches are missing where they are switched off. */
  static void clear(CassandraStorage storage) {
    CassandraSpanConsumer consumer = storage.spanConsumer;
    if (consumer != null) {
      consumer.clear();
    }
    CqlSession session = storage.session();
    var tables = session.getMetadata().getKeyspace(storage.keyspace).orElseThrow().getTables();
    tables.keySet().forEach(table -> session.execute("TRUNCATE " + storage.keyspace + "." + table.asCql(true)));
  }

  /** What Zipkin's job of dependencies does once a day. */
  static void writeDependencies(CassandraStorage storage, Map<Long, List<DependencyLink>> linksOfDays) {
    var insert =
        storage
            .session()
            .prepare(
                "INSERT INTO %s.%s (day, parent, child, calls, errors) VALUES (?, ?, ?, ?, ?)"
                    .formatted(storage.keyspace, Schema.TABLE_DEPENDENCY));
    linksOfDays.forEach(
        (midnight, links) -> {
          var day = Instant.ofEpochMilli(midnight).atZone(ZoneOffset.UTC).toLocalDate();
          for (DependencyLink link : links) {
            storage
                .session()
                .execute(insert.bind(day, link.parent(), link.child(), link.callCount(), link.errorCount()));
          }
        });
  }
}
