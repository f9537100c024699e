// SPDX-License-Identifier: Apache-2.0
// The Java driver 4: user types, tuples, vectors and collections inside one another, JSON, traces, payloads, warnings.
package tetrad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.BatchStatementBuilder;
import com.datastax.oss.driver.api.core.cql.DefaultBatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.QueryTrace;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.cql.Statement;
import com.datastax.oss.driver.api.core.data.CqlVector;
import com.datastax.oss.driver.api.core.data.UdtValue;
import com.datastax.oss.driver.api.core.servererrors.InvalidQueryException;
import com.datastax.oss.driver.api.core.type.DataTypes;
import com.datastax.oss.driver.api.core.type.UserDefinedType;
import com.datastax.oss.driver.api.core.type.reflect.GenericType;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class NestedTest {
  private static final String KEYSPACE = String.format("drv_java_nested_%08x", new Random().nextInt());
  private static CqlSession session;

  @BeforeAll
  static void open() {
    session = DriverTest.builder(DriverTest.HOSTS, DriverTest.settings()).build();
    session.execute("CREATE KEYSPACE " + KEYSPACE + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
        + Math.min(4, DriverTest.HOSTS.size()) + "}");
    session.execute("USE " + KEYSPACE);
    session.execute("CREATE TYPE street (name text, number int)");
    session.execute("CREATE TYPE address (street frozen<street>, zip text, phones frozen<map<text, frozen<list<text>>>>)");
    session.execute("CREATE TABLE people (k int PRIMARY KEY, home frozen<address>, free address, every list<frozen<address>>)");
  }

  @AfterAll
  static void close() {
    session.execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
    session.close();
  }

  private static UdtValue home(CqlSession of, int number) {
    UserDefinedType address = of.getMetadata().getKeyspace(KEYSPACE).orElseThrow().getUserDefinedType("address").orElseThrow();
    UserDefinedType street = (UserDefinedType) address.getFieldTypes().get(0);
    return address.newValue(street.newValue("Main", number), "10115", Map.of("work", List.of("1", "2")));
  }

  @ParameterizedTest
  @ValueSource(strings = {"V3", "V4", "V5"})
  void everyVersionCarriesUserTypesInsideUserTypesAndCollections(String version) {
    try (CqlSession other = DriverTest.builder(DriverTest.HOSTS, DriverTest.settings()
            .withString(DefaultDriverOption.PROTOCOL_VERSION, version)).withKeyspace(KEYSPACE).build()) {
      int key = version.charAt(1);
      PreparedStatement insert = other.prepare("INSERT INTO people (k, home, free, every) VALUES (?, ?, ?, ?)");
      other.execute(insert.bind(key, home(other, 1), home(other, 2), List.of(home(other, 3), home(other, 4))));
      Row row = other.execute(SimpleStatement.newInstance("SELECT * FROM people WHERE k = ?", key)).one();
      assertEquals(home(other, 1).getFormattedContents(), row.getUdtValue("home").getFormattedContents());
      assertEquals(home(other, 2).getFormattedContents(), row.getUdtValue("free").getFormattedContents());
      assertEquals(4, row.getList("every", UdtValue.class).get(1).getUdtValue("street").getInt("number"));
    }
  }

  @Test
  void aFieldOfATypeThatIsNotFrozenChangesAlone() {
    session.execute(session.prepare("INSERT INTO people (k, free) VALUES (?, ?)").bind(20, home(session, 1)));
    session.execute(session.prepare("UPDATE people SET free.zip = ?, free.phones = null WHERE k = ?").bind("2", 20));
    Row row = session.execute("SELECT free, free.zip FROM people WHERE k = 20").one();
    assertEquals("2", row.getString(1));
    assertTrue(row.getUdtValue(0).isNull("phones"));
    assertThrows(InvalidQueryException.class, () -> session.execute("UPDATE people SET home.zip = 'x' WHERE k = 20"));
  }

  @Test
  void tuplesAndCollectionsNest() {
    session.execute("CREATE TABLE deep (k int PRIMARY KEY, v map<text, frozen<list<frozen<map<int, frozen<set<text>>>>>>>,"
        + " t tuple<int, frozen<tuple<text, boolean>>>)");
    var type = GenericType.mapOf(GenericType.STRING, GenericType.listOf(GenericType.mapOf(GenericType.INTEGER, GenericType.setOf(String.class))));
    Map<String, List<Map<Integer, Set<String>>>> value = Map.of("a", List.of(Map.of(1, Set.of("x", "y")), Map.of()), "b", List.of());
    var inner = DataTypes.tupleOf(DataTypes.TEXT, DataTypes.BOOLEAN);
    var tuple = DataTypes.tupleOf(DataTypes.INT, inner);
    PreparedStatement insert = session.prepare("INSERT INTO deep (k, v, t) VALUES (1, ?, ?)");
    session.execute(insert.boundStatementBuilder().set(0, value, type).setTupleValue(1, tuple.newValue(7, inner.newValue("seven", true))).build());
    Row row = session.execute("SELECT v, t FROM deep WHERE k = 1").one();
    assertEquals(value, row.get(0, type));
    assertEquals("seven", row.getTupleValue(1).getTupleValue(1).getString(0));
  }

  @Test
  void vectorsComeBack() {
    session.execute("CREATE TABLE vectors (k int PRIMARY KEY, v vector<float, 3>, w vector<text, 2>)");
    CqlVector<Float> floats = CqlVector.newInstance(0.5f, -1f, 2.25f);
    CqlVector<String> texts = CqlVector.newInstance("", "second");
    session.execute(session.prepare("INSERT INTO vectors (k, v, w) VALUES (1, ?, ?)").bind(floats, texts));
    Row row = session.execute("SELECT v, w, similarity_euclidean(v, [0.5, -1.0, 2.25]) FROM vectors WHERE k = 1").one();
    assertEquals(floats, row.getVector(0, Float.class));
    assertEquals(texts, row.getVector(1, String.class));
    assertEquals(1f, row.getFloat(2));
  }

  @Test
  void jsonGoesInAndOut() {
    session.execute(session.prepare("INSERT INTO people JSON ?").bind("{\"k\": 70, \"home\": {\"street\": {\"name\": \"J\", \"number\": 7}, \"zip\": \"z\"}}"));
    String text = session.execute("SELECT JSON k, home FROM people WHERE k = 70").one().getString(0);
    assertTrue(text.contains("\"k\": 70") && text.contains("\"street\": {\"name\": \"J\", \"number\": 7}"), text);
  }

  @Test
  void simplePreparedAndBatchedRequestsAreTraced() {
    PreparedStatement insert = session.prepare("INSERT INTO people (k) VALUES (?)");
    BatchStatementBuilder batch = BatchStatement.builder(DefaultBatchType.UNLOGGED).addStatement(insert.bind(81)).addStatement(insert.bind(82));
    for (Statement<?> statement : List.of(SimpleStatement.newInstance("SELECT * FROM people"), insert.bind(80), batch.build())) {
      QueryTrace trace = session.execute(statement.setTracing(true)).getExecutionInfo().getQueryTrace();
      assertTrue(trace.getDurationMicros() > 0 && trace.getEvents().size() >= 2);
      assertNotNull(trace.getCoordinatorAddress());
      assertEquals("QUORUM", trace.getParameters().get("consistency_level"));
    }
    assertNull(session.execute(insert.bind(80)).getExecutionInfo().getTracingId());
  }

  @ParameterizedTest
  @ValueSource(strings = {"V4", "V5"})
  void aPayloadIsTakenAndWarningsComeWithTheAnswer(String version) {
    try (CqlSession other = DriverTest.builder(DriverTest.HOSTS, DriverTest.settings()
            .withString(DefaultDriverOption.PROTOCOL_VERSION, version)).withKeyspace(KEYSPACE).build()) {
      SimpleStatement select = SimpleStatement.newInstance("SELECT key FROM system.local")
          .setCustomPayload(Map.of("a", ByteBuffer.wrap(new byte[] {1}), "empty", ByteBuffer.allocate(0)));
      assertEquals("local", other.execute(select).one().getString(0));
      other.execute("CREATE TABLE IF NOT EXISTS warned (k int PRIMARY KEY, v text)");
      BatchStatementBuilder batch = BatchStatement.builder(DefaultBatchType.UNLOGGED);
      PreparedStatement insert = other.prepare("INSERT INTO warned (k, v) VALUES (?, ?)");
      for (int k = 0; k < 12; k++) batch.addStatement(insert.bind(k, "x".repeat(600)));
      String warnings = other.execute(batch.build()).getExecutionInfo().getWarnings().toString();
      assertTrue(warnings.contains("exceeding specified threshold") && warnings.contains("Unlogged batch covering 12 partitions"), warnings);
    }
  }
}
