// SPDX-License-Identifier: Apache-2.0
package tetrad.applications;

import com.datastax.oss.driver.api.core.CqlSession;
import java.net.InetSocketAddress;

/** The cluster that the suite runs against: TETRAD_HOST, or 127.0.0.1. */
final class Cluster {
  static final String DATA_CENTER = System.getenv().getOrDefault("TETRAD_DC", "datacenter1");

  private Cluster() {}

  static String host() {
    return System.getenv().getOrDefault("TETRAD_HOST", "127.0.0.1");
  }

  static String contactPoint() {
    return host() + ":9042";
  }

  /** A session whose keyspace is there, and empty when it was not. */
  static CqlSession session(String keyspace) {
    try (CqlSession first = connect(null)) {
      first.execute("DROP KEYSPACE IF EXISTS " + keyspace);
      first.execute(
          "CREATE KEYSPACE "
              + keyspace
              + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
    }
    return connect(keyspace);
  }

  private static CqlSession connect(String keyspace) {
    var builder =
        CqlSession.builder()
            .addContactPoint(new InetSocketAddress(host(), 9042))
            .withLocalDatacenter(DATA_CENTER);
    return (keyspace == null ? builder : builder.withKeyspace(keyspace)).build();
  }
}
