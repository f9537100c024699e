// SPDX-License-Identifier: Apache-2.0
package tetrad.applications;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;

/** How the plugin of Pekko finds the cluster, and where it keeps its tables. */
final class PekkoConfig {
  private PekkoConfig() {}

  static Config of(String keyspace) {
    return ConfigFactory.parseString(
            """
            pekko.loglevel = WARNING
            pekko.actor.allow-java-serialization = on
            pekko.actor.warn-about-java-serializer-usage = off
            pekko.persistence.journal.plugin = "pekko.persistence.cassandra.journal"
            pekko.persistence.snapshot-store.plugin = "pekko.persistence.cassandra.snapshot"
            pekko.persistence.cassandra {
              journal { keyspace = %s, keyspace-autocreate = true, tables-autocreate = true }
              snapshot { keyspace = %s, keyspace-autocreate = true, tables-autocreate = true }
            }
            datastax-java-driver {
              basic.contact-points = ["%s"]
              basic.load-balancing-policy.local-datacenter = %s
              basic.request.timeout = 20 s
            }
            """
                .formatted(keyspace, keyspace, Cluster.contactPoint(), Cluster.DATA_CENTER))
        .withFallback(ConfigFactory.load());
  }
}
