// SPDX-License-Identifier: Apache-2.0
// The image (TETRAD_IMAGE, tetrad) as Testcontainers' module for Java uses it in the place of Cassandra's.
package tetrad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.servererrors.InvalidQueryException;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.testcontainers.cassandra.CassandraContainer;
import org.testcontainers.containers.Container.ExecResult;
import org.testcontainers.utility.DockerImageName;

class ContainerTest {
  private static final String IMAGE = System.getenv().getOrDefault("TETRAD_IMAGE", "tetrad");
  private static CassandraContainer container;

  private static CassandraContainer of(String script) {
    CassandraContainer made =
        new CassandraContainer(DockerImageName.parse(IMAGE).asCompatibleSubstituteFor("cassandra"))
            .withStartupTimeout(Duration.ofMinutes(2));
    return script == null ? made : made.withInitScript(script);
  }

  private static CqlSession connect(CassandraContainer to) {
    return CqlSession.builder()
        .addContactPoint(to.getContactPoint())
        .withLocalDatacenter(to.getLocalDatacenter())
        .build();
  }

  @BeforeAll
  static void start() {
    container = of("init.cql");
    container.start(); // waits until a query by cqlsh inside it succeeds, then runs the script
  }

  @AfterAll
  static void stop() {
    container.stop();
  }

  @Test
  void theScriptHasRun() {
    try (CqlSession session = connect(container)) {
      assertEquals("seven", session.execute("SELECT v FROM begun.t WHERE k = 7").one().getString(0));
    }
  }

  @Test
  void aDriverWritesReadsAndIsRefused() {
    try (CqlSession session = connect(container)) {
      session.execute("CREATE TABLE begun.w (k int PRIMARY KEY, v int)");
      var insert = session.prepare("INSERT INTO begun.w (k, v) VALUES (?, ?)");
      for (int k = 0; k < 50; ++k) session.execute(insert.bind(k, k));
      assertEquals(50, session.execute("SELECT count(*) FROM begun.w").one().getLong(0));
      assertThrows(InvalidQueryException.class, () -> session.execute("SELECT nonsense FROM begun.w"));
    }
  }

  @Test
  void itTakesAnyCredentialsWhileNoneAreAskedFor() throws Exception {
    try (CqlSession session =
        CqlSession.builder()
            .addContactPoint(container.getContactPoint())
            .withLocalDatacenter(container.getLocalDatacenter())
            .withAuthCredentials(container.getUsername(), container.getPassword())
            .build()) {
      assertEquals(1, session.execute("SELECT key FROM system.local").all().size());
    }
    ExecResult shell =
        container.execInContainer(
            "cqlsh", "-u", "cassandra", "-p", "cassandra", "-e", "SELECT k FROM begun.t WHERE k = 7");
    assertEquals(0, shell.getExitCode(), shell.getStderr());
    assertTrue(shell.getStdout().contains("(1 rows)"), shell.getStdout());
  }

  @Test
  void variablesOfCassandrasImageAreTakenOrNamed() throws Exception {
    try (CassandraContainer other = of(null)) {
      other.withEnv("CASSANDRA_CLUSTER_NAME", "of the test").withEnv("CASSANDRA_DC", "dc7")
          .withEnv("CASSANDRA_RACK", "r8").withEnv("MAX_HEAP_SIZE", "1G");
      other.start();
      try (CqlSession session = connect(other)) {
        var row = session.execute("SELECT cluster_name, data_center, rack FROM system.local").one();
        assertEquals("of the test dc7 r8", row.getString(0) + " " + row.getString(1) + " " + row.getString(2));
      }
      assertTrue(other.getLogs().contains("MAX_HEAP_SIZE has no effect in Tetrad"), other.getLogs());
    }
  }

  @Test
  void aScriptThatFailsFailsTheStart() {
    try (CassandraContainer other = of("wrong.cql")) {
      assertThrows(Exception.class, other::start);
      assertNotEquals("", other.getContainerId());
    }
  }
}
