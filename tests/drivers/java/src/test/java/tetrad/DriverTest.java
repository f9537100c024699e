// SPDX-License-Identifier: Apache-2.0
// The Java driver 4: versions and compression, schema, types, statements, the ring, a node that dies.
package tetrad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.CqlSessionBuilder;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.config.ProgrammaticDriverConfigLoaderBuilder;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.BatchStatementBuilder;
import com.datastax.oss.driver.api.core.cql.BatchType;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import com.datastax.oss.driver.api.core.cql.DefaultBatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.data.CqlDuration;
import com.datastax.oss.driver.api.core.metadata.Node;
import com.datastax.oss.driver.api.core.metadata.NodeState;
import com.datastax.oss.driver.api.core.metadata.NodeStateListenerBase;
import com.datastax.oss.driver.api.core.metadata.TokenMap;
import com.datastax.oss.driver.api.core.metadata.schema.ClusteringOrder;
import com.datastax.oss.driver.api.core.metadata.schema.KeyspaceMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import com.datastax.oss.driver.api.core.metadata.token.TokenRange;
import com.datastax.oss.driver.api.core.servererrors.AlreadyExistsException;
import com.datastax.oss.driver.api.core.servererrors.InvalidQueryException;
import com.datastax.oss.driver.api.core.servererrors.SyntaxError;
import com.datastax.oss.driver.api.core.type.DataTypes;
import com.datastax.oss.driver.api.core.type.codec.TypeCodecs;
import com.datastax.oss.driver.api.core.type.reflect.GenericType;
import java.io.IOException;
import java.io.InputStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class DriverTest {
  static final List<String> HOSTS = List.of(environment("TETRAD_TEST_HOSTS", "127.0.0.1").split(","));
  private static final int PORT = Integer.parseInt(environment("TETRAD_TEST_PORT", "9042"));
  private static final String KEYSPACE = String.format("drv_java_%08x", new Random().nextInt());
  private static CqlSession session;

  private static String environment(String name, String fallback) {
    String value = System.getenv(name);
    return value == null || value.isEmpty() ? fallback : value;
  }

  static ProgrammaticDriverConfigLoaderBuilder settings() {
    return DriverConfigLoader.programmaticBuilder()
        .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(20))
        .withDuration(DefaultDriverOption.CONTROL_CONNECTION_TIMEOUT, Duration.ofSeconds(10))
        .withDuration(DefaultDriverOption.METADATA_SCHEMA_WINDOW, Duration.ofMillis(50))
        .withString(DefaultDriverOption.REQUEST_CONSISTENCY, "QUORUM")
        .withString(DefaultDriverOption.LOAD_BALANCING_POLICY_CLASS, "DcInferringLoadBalancingPolicy");
  }

  static CqlSessionBuilder builder(List<String> hosts, ProgrammaticDriverConfigLoaderBuilder settings) {
    CqlSessionBuilder builder = CqlSession.builder().withConfigLoader(settings.build());
    for (String host : hosts) builder.addContactPoint(new InetSocketAddress(host, PORT));
    String user = System.getenv("TETRAD_TEST_USER"), authority = System.getenv("TETRAD_TEST_TLS_CA");
    if (user != null) builder.withAuthCredentials(user, System.getenv("TETRAD_TEST_PASSWORD"));
    if (authority != null) builder.withSslContext(trusting(authority));
    return builder;
  }

  /** Takes servers that this authority, a certificate in PEM form, has signed. */
  private static SSLContext trusting(String authority) {
    try (InputStream file = Files.newInputStream(Path.of(authority))) {
      KeyStore known = KeyStore.getInstance(KeyStore.getDefaultType());
      known.load(null, null);
      known.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(file));
      TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
      trust.init(known);
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(null, trust.getTrustManagers(), null);
      return context;
    } catch (IOException | GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private static void until(String what, int seconds, BooleanSupplier condition) throws InterruptedException {
    for (long deadline = System.nanoTime() + seconds * 1_000_000_000L; !condition.getAsBoolean(); Thread.sleep(50)) {
      assertTrue(System.nanoTime() < deadline, "not within " + seconds + " s: " + what);
    }
  }

  @BeforeAll
  static void open() {
    session = builder(HOSTS, settings()).build();
    session.execute("CREATE KEYSPACE " + KEYSPACE + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
        + Math.min(4, HOSTS.size()) + "}");
    session.execute("USE " + KEYSPACE);
  }

  @AfterAll
  static void close() {
    session.execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
    session.close();
  }

  @ParameterizedTest
  @CsvSource({"V3,none", "V3,lz4", "V3,snappy", "V4,none", "V4,lz4", "V4,snappy", "V5,none", "V5,lz4"})
  void everyVersionAndCompressionCarriesRowsBothWays(String version, String compression) {
    try (CqlSession other = builder(HOSTS, settings()
            .withString(DefaultDriverOption.PROTOCOL_VERSION, version)
            .withString(DefaultDriverOption.PROTOCOL_COMPRESSION, compression)).withKeyspace(KEYSPACE).build()) {
      assertEquals(version, other.getContext().getProtocolVersion().name());
      other.execute("CREATE TABLE IF NOT EXISTS ways (k int PRIMARY KEY, v text, b blob)");
      String text = "tetrad ".repeat(30000);
      byte[] bytes = new byte[200000];
      new Random(1).nextBytes(bytes);
      PreparedStatement insert = other.prepare("INSERT INTO ways (k, v, b) VALUES (?, ?, ?)");
      for (int key = 0; key < 5; key++) other.execute(insert.bind(key, text, ByteBuffer.wrap(bytes)));
      Row row = other.execute("SELECT v, b FROM ways WHERE k = 3").one();
      assertEquals(text, row.getString("v"));
      assertEquals(ByteBuffer.wrap(bytes), row.getByteBuffer("b"));
    }
  }

  @Test
  void aDriverLeftAloneLandsOnTheNewestVersionBothSpeak() {
    assertEquals("V5", session.getContext().getProtocolVersion().name());
    Row local = session.execute("SELECT release_version, cql_version FROM system.local WHERE key='local'").one();
    assertTrue(local.getString(0).startsWith("5.0"));
    assertEquals("3.4.7", local.getString(1));
  }

  @Test
  void aTableShowsInTheMetadata() {
    session.execute("CREATE TABLE shown (a int, b text, c timeuuid, s text static, m map<text, frozen<list<int>>>,"
        + " PRIMARY KEY ((a, b), c)) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'shown'");
    KeyspaceMetadata keyspace = session.getMetadata().getKeyspace(KEYSPACE).orElseThrow();
    TableMetadata table = keyspace.getTable("shown").orElseThrow();
    assertEquals(List.of("a", "b"), names(table));
    assertEquals(List.of(ClusteringOrder.DESC), new ArrayList<>(table.getClusteringColumns().values()));
    assertTrue(table.getColumn("s").orElseThrow().isStatic());
    assertEquals(DataTypes.mapOf(DataTypes.TEXT, DataTypes.frozenListOf(DataTypes.INT)), table.getColumn("m").orElseThrow().getType());
    assertFalse(table.isCompactStorage());
    assertTrue(table.describe(false).contains("comment = 'shown'"));
    assertTrue(keyspace.getReplication().get("class").endsWith("SimpleStrategy"));
    assertTrue(session.refreshSchema().getKeyspace(KEYSPACE).orElseThrow().getTable("shown").isPresent());
  }

  private static List<String> names(TableMetadata table) {
    List<String> names = new ArrayList<>();
    table.getPartitionKey().forEach(column -> names.add(column.getName().asInternal()));
    return names;
  }

  @Test
  void allNodesAgreeOnTheSchemaAndADroppedNameIsFreeAtOnce() {
    for (int round = 0; round < 4; round++) {
      ResultSet made = session.execute("CREATE TABLE reborn (k int PRIMARY KEY, v int)");
      assertTrue(made.getExecutionInfo().isSchemaInAgreement());
      assertTrue(session.checkSchemaAgreement());
      assertNull(session.execute("SELECT * FROM reborn").one());
      session.execute("INSERT INTO reborn (k, v) VALUES (1, 2)");
      session.execute("DROP TABLE reborn");
    }
    session.execute("CREATE TABLE once (k int PRIMARY KEY)");
    assertThrows(AlreadyExistsException.class, () -> session.execute("CREATE TABLE once (k int PRIMARY KEY)"));
  }

  @Test
  void anotherSessionHearsOfSchemaChanges() throws InterruptedException {
    try (CqlSession watcher = builder(HOSTS, settings()).build()) {
      session.execute("CREATE TABLE heard (k int PRIMARY KEY)");
      until("CREATE TABLE heard of", 10, () -> heard(watcher).getTable("heard").isPresent());
      session.execute("ALTER TABLE heard ADD v text");
      until("ALTER TABLE heard of", 10, () -> heard(watcher).getTable("heard").orElseThrow().getColumn("v").isPresent());
      session.execute("DROP TABLE heard");
      until("DROP TABLE heard of", 10, () -> heard(watcher).getTable("heard").isEmpty());
    }
  }

  private static KeyspaceMetadata heard(CqlSession watcher) {
    return watcher.getMetadata().getKeyspace(KEYSPACE).orElseThrow();
  }

  static Stream<Arguments> types() throws Exception {
    return Stream.of(
        Arguments.of("ascii", GenericType.STRING, List.of("", "plain")),
        Arguments.of("bigint", GenericType.LONG, List.of(0L, -1L, Long.MAX_VALUE, Long.MIN_VALUE)),
        Arguments.of("blob", GenericType.BYTE_BUFFER, List.of(ByteBuffer.allocate(0), ByteBuffer.wrap(new byte[] {0, -1, -128}))),
        Arguments.of("boolean", GenericType.BOOLEAN, List.of(true, false)),
        Arguments.of("date", GenericType.LOCAL_DATE, List.of(LocalDate.of(2024, 2, 29), LocalDate.of(1, 1, 1), LocalDate.EPOCH)),
        Arguments.of("decimal", GenericType.BIG_DECIMAL, List.of(new BigDecimal("1.10"), new BigDecimal("-1E-6"), new BigDecimal("1E+20"))),
        Arguments.of("double", GenericType.DOUBLE, List.of(0.0, 1.5, Double.MAX_VALUE, Double.NaN, Double.NEGATIVE_INFINITY)),
        Arguments.of("duration", GenericType.CQL_DURATION, List.of(CqlDuration.newInstance(1, 2, 3), CqlDuration.newInstance(-1, -2, -3))),
        Arguments.of("float", GenericType.FLOAT, List.of(0f, -2.5f, Float.NaN)),
        Arguments.of("inet", GenericType.INET_ADDRESS, List.of(InetAddress.getByName("127.0.0.1"), InetAddress.getByName("2001:db8::1"))),
        Arguments.of("int", GenericType.INTEGER, List.of(0, -1, Integer.MAX_VALUE, Integer.MIN_VALUE)),
        Arguments.of("smallint", GenericType.SHORT, List.of(Short.MAX_VALUE, Short.MIN_VALUE)),
        Arguments.of("text", GenericType.STRING, List.of("", "naïve 漢字 😀", "\0", "x".repeat(70000))),
        Arguments.of("time", GenericType.LOCAL_TIME, List.of(LocalTime.MIDNIGHT, LocalTime.MAX)),
        Arguments.of("timestamp", GenericType.INSTANT, List.of(Instant.EPOCH, Instant.parse("2024-02-29T12:34:56.789Z"), Instant.parse("1900-01-01T00:00:00Z"))),
        Arguments.of("timeuuid", GenericType.UUID, List.of(UUID.fromString("d2177dd0-eaa2-11de-a572-001b779c76e3"))),
        Arguments.of("tinyint", GenericType.BYTE, List.of(Byte.MAX_VALUE, Byte.MIN_VALUE)),
        Arguments.of("uuid", GenericType.UUID, List.of(new UUID(0, 0), new UUID(-1, -1))),
        Arguments.of("varchar", GenericType.STRING, List.of("same as text")),
        Arguments.of("varint", GenericType.BIG_INTEGER, List.of(BigInteger.ZERO, BigInteger.valueOf(-129), BigInteger.TWO.pow(200))),
        Arguments.of("list<int>", GenericType.listOf(Integer.class), List.of(List.of(3, 1, 2, 1))),
        Arguments.of("set<text>", GenericType.setOf(String.class), List.of(Set.of("a", "b", "é"))),
        Arguments.of("map<text, int>", GenericType.mapOf(String.class, Integer.class), List.of(Map.of("", 1, "x", 2))),
        Arguments.of("frozen<list<frozen<map<text, int>>>>",
            GenericType.listOf(GenericType.mapOf(String.class, Integer.class)), List.of(List.of(Map.of("a", 1), Map.of()))));
  }

  @ParameterizedTest
  @MethodSource("types")
  <T> void valuesComeBackAsTheyWentIn(String cqlType, GenericType<T> type, List<T> values) {
    String table = "type_" + cqlType.replaceAll("[^a-z]", "_");
    session.execute("CREATE TABLE " + table + " (k int PRIMARY KEY, v " + cqlType + ")");
    PreparedStatement insert = session.prepare("INSERT INTO " + table + " (k, v) VALUES (?, ?)");
    PreparedStatement select = session.prepare("SELECT v FROM " + table + " WHERE k = ?");
    List<T> all = new ArrayList<>(values);
    boolean collection = cqlType.contains("<");
    if (!collection) all.add(null);
    for (int key = 0; key < all.size(); key++) {
      session.execute(insert.boundStatementBuilder().setInt(0, key).set(1, all.get(key), type).build());
      Row row = session.execute(select.bind(key)).one();
      assertTrue(Objects.equals(all.get(key), row.get(0, type)) && (collection || row.isNull(0) == (all.get(key) == null)));
    }
  }

  @Test
  void tuplesAndUnsetValues() {
    session.execute("CREATE TABLE tuples (k int PRIMARY KEY, t tuple<int, text, boolean>, v int)");
    var type = DataTypes.tupleOf(DataTypes.INT, DataTypes.TEXT, DataTypes.BOOLEAN);
    PreparedStatement insert = session.prepare("INSERT INTO tuples (k, t, v) VALUES (?, ?, ?)");
    session.execute(insert.bind(1, type.newValue(7, "seven", null), 5));
    assertEquals(type.newValue(7, "seven", null), session.execute("SELECT t FROM tuples WHERE k = 1").one().getTupleValue(0));
    session.execute(insert.boundStatementBuilder().setInt("k", 1).build());
    assertEquals(5, session.execute("SELECT v FROM tuples WHERE k = 1").one().getInt(0));
    session.execute(insert.boundStatementBuilder().setInt("k", 1).setToNull("v").build());
    assertTrue(session.execute("SELECT v FROM tuples WHERE k = 1").one().isNull(0));
  }

  private void fillWide() {
    session.execute("CREATE TABLE IF NOT EXISTS wide (k int, c int, v text, PRIMARY KEY (k, c))");
    PreparedStatement insert = session.prepare("INSERT INTO wide (k, c, v) VALUES (?, ?, ?)");
    for (int k = 0; k < 3; k++) {
      BatchStatementBuilder batch = BatchStatement.builder(DefaultBatchType.UNLOGGED);
      for (int c = 0; c < 100; c++) batch.addStatement(insert.bind(k, c, "v" + k + "." + c));
      session.execute(batch.build());
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 7, 299, 300, 5000})
  void pagesHoldEveryRowOnce(int size) {
    fillWide();
    Set<String> seen = new HashSet<>();
    int rows = 0;
    for (Row row : session.execute(SimpleStatement.newInstance("SELECT k, c FROM wide").setPageSize(size))) {
      seen.add(row.getInt(0) + "." + row.getInt(1));
      rows++;
    }
    assertEquals(300, seen.size());
    assertEquals(300, rows);
  }

  @Test
  void aPagingStateGoesOnInAnotherSession() {
    fillWide();
    SimpleStatement query = SimpleStatement.newInstance("SELECT c FROM wide WHERE k = 1 ORDER BY c DESC").setPageSize(60);
    ResultSet first = session.execute(query);
    List<Integer> seen = new ArrayList<>();
    while (first.getAvailableWithoutFetching() > 0) seen.add(first.one().getInt(0));
    try (CqlSession other = builder(HOSTS, settings()).withKeyspace(KEYSPACE).build()) {
      for (Row row : other.execute(query.setPagingState(first.getExecutionInfo().getPagingState()))) seen.add(row.getInt(0));
    }
    for (int i = 0; i < 100; i++) assertEquals(99 - i, seen.get(i));
    assertEquals(100, seen.size());
  }

  @Test
  void aPreparedStatementFollowsAChangeOfItsTable() {
    session.execute("CREATE TABLE changing (k int PRIMARY KEY, v int)");
    PreparedStatement select = session.prepare("SELECT * FROM changing WHERE k = ?");
    session.execute("INSERT INTO changing (k, v) VALUES (1, 2)");
    assertEquals(2, session.execute(select.bind(1)).one().getColumnDefinitions().size());
    ByteBuffer before = select.getResultMetadataId();
    session.execute("ALTER TABLE changing ADD w text");
    session.execute("UPDATE changing SET w = 'new' WHERE k = 1");
    assertEquals("new", session.execute(select.bind(1)).one().getString("w"));
    assertNotEquals(before, select.getResultMetadataId());
  }

  @Test
  void batchesOfBothKindsInOnePartition() {
    session.execute("CREATE TABLE batched (k int, c int, v text, PRIMARY KEY (k, c))");
    PreparedStatement insert = session.prepare("INSERT INTO batched (k, c, v) VALUES (?, ?, ?)");
    for (BatchType kind : List.of(DefaultBatchType.LOGGED, DefaultBatchType.UNLOGGED)) {
      int key = kind == DefaultBatchType.LOGGED ? 1 : 2;
      BatchStatementBuilder batch = BatchStatement.builder(kind).setQueryTimestamp(1000 + key);
      for (int c = 0; c < 10; c++) batch.addStatement(insert.bind(key, c, "v"));
      batch.addStatement(SimpleStatement.newInstance("DELETE FROM batched WHERE k = ? AND c = ?", key, 5));
      session.execute(batch.build());
      List<Row> rows = session.execute("SELECT c, writetime(v) FROM batched WHERE k = " + key).all();
      assertEquals(9, rows.size());
      for (Row row : rows) assertEquals(1000 + key, row.getLong(1));
    }
  }

  @Test
  void conditionalStatementsTellWhetherTheyWereApplied() {
    session.execute("CREATE TABLE versioned (k int, c int, version int, v text, PRIMARY KEY (k, c))");
    PreparedStatement insert = session.prepare("INSERT INTO versioned (k, c, version, v) VALUES (?, ?, 1, ?) IF NOT EXISTS");
    assertTrue(session.execute(insert.bind(1, 1, "first")).wasApplied());
    ResultSet second = session.execute(insert.bind(1, 1, "second"));
    assertFalse(second.wasApplied());
    assertEquals("first", second.one().getString("v"));
    PreparedStatement update = session.prepare("UPDATE versioned SET version = ?, v = ? WHERE k = 1 AND c = 1 IF version = ?");
    ResultSet late = session.execute(update.bind(3, "late", 2).setSerialConsistencyLevel(ConsistencyLevel.LOCAL_SERIAL));
    assertFalse(late.wasApplied());
    assertEquals(1, late.one().getInt("version"));
    assertTrue(session.execute(update.bind(2, "next", 1)).wasApplied());
    BatchStatement batch = BatchStatement.newInstance(DefaultBatchType.LOGGED, update.bind(3, "batch", 2), insert.bind(1, 2, "other"));
    assertTrue(session.execute(batch).wasApplied());
    ResultSet again = session.execute(batch);
    assertFalse(again.wasApplied());
    assertEquals(List.of("batch", "other"), again.all().stream().map(row -> row.getString("v")).collect(Collectors.toList()));
    assertTrue(session.execute("DELETE FROM versioned WHERE k = 1 AND c = 2 IF EXISTS").wasApplied());
    Row left = session.execute(SimpleStatement.newInstance("SELECT version, v FROM versioned WHERE k = 1")
        .setConsistencyLevel(ConsistencyLevel.SERIAL)).one();
    assertEquals(3, left.getInt("version"));
    assertEquals("batch", left.getString("v"));
  }

  @Test
  void namedValuesPositionalValuesAndKeyspacePerRequest() {
    fillWide();
    Row row = session.execute(SimpleStatement.newInstance("SELECT v FROM wide WHERE k = :k AND c = :c", Map.of("k", 1, "c", 2))).one();
    assertEquals("v1.2", row.getString(0));
    row = session.execute(SimpleStatement.newInstance("SELECT v FROM wide WHERE k = ? AND c = ?", 1, 3)).one();
    assertEquals("v1.3", row.getString(0));
    try (CqlSession other = builder(HOSTS, settings()).build()) {
      SimpleStatement statement = SimpleStatement.newInstance("SELECT v FROM wide WHERE k = 1 AND c = 4").setKeyspace(KEYSPACE);
      assertEquals("v1.4", other.execute(statement).one().getString(0));
      assertEquals("v1.4", other.execute(other.prepare(statement).bind()).one().getString(0));
    }
  }

  @Test
  void errorsHaveTheirClassAndWords() {
    assertWords(SyntaxError.class, "SELEC * FROM wide", "no viable alternative at input 'SELEC'");
    assertWords(InvalidQueryException.class, "SELECT * FROM nosuchtable", "table nosuchtable does not exist");
    assertWords(InvalidQueryException.class, "SELECT nosuch FROM system.local", "Undefined column name nosuch");
    assertWords(InvalidQueryException.class, "SELECT * FROM system.local WHERE rack = 'x'", "ALLOW FILTERING");
    assertWords(InvalidQueryException.class, "USE nosuchkeyspace", "does not exist");
  }

  private static void assertWords(Class<? extends Exception> type, String statement, String words) {
    Exception error = assertThrows(type, () -> session.execute(statement));
    assertTrue(error.getMessage().contains(words), error.getMessage());
  }

  @Test
  void aScanThatAggregatesWarns() {
    fillWide();
    List<String> warnings = session.execute("SELECT max(c) FROM wide").getExecutionInfo().getWarnings();
    assertTrue(warnings.stream().anyMatch(text -> text.contains("Aggregation query used without partition key")), warnings::toString);
  }

  @Test
  void theRingIsKnownAndRequestsGoToAReplica() {
    assertTrue(session.getMetadata().getNodes().size() >= HOSTS.size());
    for (Node node : session.getMetadata().getNodes().values()) {
      assertTrue(node.getDatacenter() != null && node.getRack() != null && node.getHostId() != null && node.getBroadcastRpcAddress().isPresent());
    }
    TokenMap ring = session.getMetadata().getTokenMap().orElseThrow();
    assertEquals("org.apache.cassandra.dht.Murmur3Partitioner", ring.getPartitionerName());
    assertTrue(ring.getTokenRanges().size() >= session.getMetadata().getNodes().size());
    session.execute("CREATE TABLE routed (k text PRIMARY KEY, v int)");
    PreparedStatement insert = session.prepare("INSERT INTO routed (k, v) VALUES (?, ?)");
    for (int i = 0; i < 100; i++) {
      BoundStatement bound = insert.bind("é" + i, i);
      ByteBuffer key = TypeCodecs.TEXT.encode("é" + i, session.getContext().getProtocolVersion());
      Set<Node> replicas = ring.getReplicas(KEYSPACE, key);
      assertFalse(replicas.isEmpty());
      Node coordinator = session.execute(bound).getExecutionInfo().getCoordinator();
      assertTrue(replicas.contains(coordinator), coordinator + " is none of " + replicas);
      long token = session.execute(SimpleStatement.newInstance("SELECT token(k) FROM routed WHERE k = ?", "é" + i)).one().getLong(0);
      assertEquals(ring.newToken(key), ring.parse(Long.toString(token)));
    }
    int seen = 0;
    for (TokenRange range : ring.getTokenRanges()) {
      for (TokenRange part : range.unwrap()) {
        seen += session.execute(SimpleStatement.newInstance("SELECT k FROM routed WHERE token(k) > "
            + ring.format(part.getStart()) + (part.getEnd().equals(ring.parse(Long.toString(Long.MIN_VALUE))) ? ""
            : " AND token(k) <= " + ring.format(part.getEnd())))).all().size();
      }
    }
    assertEquals(100, seen);
  }

  @Test
  void aNodeThatDiesGoesDownAndComesUpWhileRequestsGoOn() throws Exception {
    String node = System.getenv("TETRAD_TEST_NODE");
    String kill = System.getenv("TETRAD_TEST_NODE_KILL");
    String start = System.getenv("TETRAD_TEST_NODE_START");
    assumeTrue(node != null && kill != null && start != null);
    Set<String> heard = ConcurrentHashMap.newKeySet();
    List<String> others = new ArrayList<>(HOSTS);
    others.remove(node);
    InetSocketAddress address = new InetSocketAddress(node, PORT);
    try (CqlSession other = builder(others, settings()).withKeyspace(KEYSPACE).withNodeStateListener(new NodeStateListenerBase() {
      @Override public void onUp(Node which) {
        if (which.getEndPoint().resolve().equals(address)) heard.add("up");
      }

      @Override public void onDown(Node which) {
        if (which.getEndPoint().resolve().equals(address)) heard.add("down");
      }
    }).build()) {
      other.execute("CREATE TABLE through (k int PRIMARY KEY, v int)");
      until("the node is up before the test", 30, () -> other.getMetadata().findNode(address).map(Node::getState).orElse(null) == NodeState.UP);
      heard.clear();
      shell(kill);
      try {
        PreparedStatement insert = other.prepare(SimpleStatement.newInstance("INSERT INTO through (k, v) VALUES (?, ?)").setIdempotent(true));
        for (int key = 0; key < 200; key++) other.execute(insert.bind(key, key));
        until("the driver hears that the node is down", 60, () -> heard.contains("down"));
      } finally {
        shell(start);
      }
      until("the driver hears that the node is up", 90, () -> heard.contains("up"));
      SimpleStatement count = SimpleStatement.newInstance("SELECT count(*) FROM through").setConsistencyLevel(ConsistencyLevel.QUORUM);
      assertEquals(200, other.execute(count).one().getLong(0));
    }
  }

  private static void shell(String command) throws Exception {
    Process process = new ProcessBuilder("sh", "-c", command).redirectErrorStream(true)
        .redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
    assertEquals(0, process.waitFor(), command);
  }
}
