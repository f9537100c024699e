// SPDX-License-Identifier: Apache-2.0
package tetrad.applications;

import static com.datastax.spark.connector.japi.CassandraJavaUtil.javaFunctions;
import static com.datastax.spark.connector.japi.CassandraJavaUtil.mapTupleToRow;
import static com.datastax.spark.connector.japi.CassandraJavaUtil.someColumns;
import static org.apache.spark.sql.functions.col;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.spark.connector.AllColumns$;
import com.datastax.spark.connector.CollectionAppend$;
import com.datastax.spark.connector.CollectionBehavior;
import com.datastax.spark.connector.CollectionColumnName;
import com.datastax.spark.connector.CollectionPrepend$;
import com.datastax.spark.connector.CollectionRemove$;
import com.datastax.spark.connector.ColumnName;
import com.datastax.spark.connector.ColumnRef;
import com.datastax.spark.connector.SomeColumns;
import com.datastax.spark.connector.cql.CassandraConnector;
import com.datastax.spark.connector.japi.GenericJavaRowReaderFactory;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import scala.Option;
import scala.Tuple2;
import scala.collection.JavaConverters;

/** Spark's connector: tables as DataFrames and as RDDs, by token ranges, joins, changes of collections. */
class SparkTest {
  private static final String KEYSPACE = "spark";
  private static final int SENSORS = 50, TIMES = 40, ROWS = SENSORS * TIMES;

  private static SparkSession spark;
  private static JavaSparkContext context;
  private static CqlSession session;

  @BeforeAll
  static void open() {
    spark =
        SparkSession.builder()
            .master("local[1]")
            .config("spark.ui.enabled", false)
            .config("spark.sql.shuffle.partitions", 2)
            .config("spark.sql.codegen.wholeStage", false)  // small tables: compiling takes longer than they do
            .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
            .config("spark.sql.extensions", "com.datastax.spark.connector.CassandraSparkExtensions")
            .config("spark.cassandra.connection.host", System.getenv().getOrDefault("TETRAD_HOST", "127.0.0.1"))
            .config("spark.cassandra.input.consistency.level", "LOCAL_QUORUM")
            .getOrCreate();
    spark.sparkContext().setLogLevel("ERROR");
    context = new JavaSparkContext(spark.sparkContext());
    session = CassandraConnector.apply(spark.sparkContext()).openSession();
    session.execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
    session.execute(
        "CREATE KEYSPACE " + KEYSPACE + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
    session.execute(
        "CREATE TABLE " + KEYSPACE + ".reading (sensor int, at int, place text, value double, PRIMARY KEY (sensor, at))");
    session.execute("CREATE TABLE " + KEYSPACE + ".mark (k int PRIMARY KEY, l list<text>, s set<text>, m map<text, int>)");
    readings()
        .write()
        .format("org.apache.spark.sql.cassandra")
        .options(Map.of("keyspace", KEYSPACE, "table", "reading"))
        .mode("append")
        .save();
  }

  @AfterAll
  static void close() {
    session.close();
    spark.stop();
  }

  private static Dataset<Row> readings() {
    return spark
        .range(ROWS)
        .selectExpr(
            "CAST(id % " + SENSORS + " AS int) AS sensor",
            "CAST(id / " + SENSORS + " AS int) AS at",
            "concat('place ', CAST(id % 7 AS string)) AS place",
            "id * 0.5D AS value");
  }

  private static Dataset<Row> table(String name) {
    return spark
        .read()
        .format("org.apache.spark.sql.cassandra")
        .options(Map.of("keyspace", KEYSPACE, "table", name))
        .load();
  }

  @Test
  void whatWasWrittenIsReadBack() {
    Set<Row> read = new HashSet<>(table("reading").select("sensor", "at", "place", "value").collectAsList());
    assertEquals(new HashSet<>(readings().collectAsList()), read);
    assertEquals(ROWS, table("reading").count());
  }

  @Test
  void conditionsOnKeysAreLeftToTheServer() {
    Dataset<Row> slice = table("reading").filter("sensor = 7 AND at >= 10 AND at < 25");
    String plan = slice.queryExecution().executedPlan().toString();
    assertTrue(plan.contains("[\"sensor\" = ?, 7]") && plan.contains("[\"at\" >= ?, 10]") && plan.contains("[\"at\" < ?, 25]"), plan);
    assertEquals(15, slice.count());
    assertEquals(80, table("reading").filter(col("sensor").isin(3, 11)).count());
    assertEquals(
        readings().filter("place = 'place 3' AND value > 200").count(),
        table("reading").filter("place = 'place 3' AND value > 200").count());
    assertEquals(ROWS / 2, table("reading").groupBy("sensor").count().filter("sensor < 25").agg(Map.of("count", "sum")).first().getLong(0));
  }

  @Test
  void tokenRangesCoverEachRowOnce() {
    var rows = javaFunctions(spark.sparkContext()).cassandraTable(KEYSPACE, "reading");
    assertTrue(rows.getNumPartitions() > 1, "one partition of Spark alone");
    List<Integer> counts =
        rows.mapPartitions(
                part -> {
                  int n = 0;
                  for (; part.hasNext(); part.next()) n++;
                  return List.of(n).iterator();
                })
            .collect();
    assertEquals(ROWS, counts.stream().mapToInt(Integer::intValue).sum());
    assertTrue(counts.stream().filter(n -> n > 0).count() > 1, "all rows in one range: " + counts);
    assertEquals(ROWS, rows.cassandraCount());
    assertEquals(SENSORS, rows.select("sensor").map(row -> row.getInt("sensor")).distinct().count());
    assertEquals(TIMES, rows.where("sensor = ?", 4).cassandraCount());
  }

  /** What the connector cuts the ring into ranges by. */
  @Test
  void sizesAreEstimatedByRanges() {
    var ranges =
        session
            .execute(
                "SELECT range_start, range_end FROM system.size_estimates WHERE keyspace_name = ? AND table_name = ?",
                KEYSPACE, "reading")
            .all();
    assertFalse(ranges.isEmpty());
    List<long[]> cut =
        ranges.stream()
            .map(range -> new long[] {Long.parseLong(range.getString(0)), Long.parseLong(range.getString(1))})
            .sorted(Comparator.comparingLong(range -> range[0]))
            .toList();
    for (int i = 0; i < cut.size(); i++) {
      assertTrue(cut.get(i)[0] < cut.get(i)[1], "a range that is empty or none");
      assertTrue(i == 0 || cut.get(i - 1)[1] <= cut.get(i)[0], "two ranges that overlap");
    }
  }

  @Test
  void rowsAreJoinedByTheirKeys() {
    List<Tuple2<Integer, Integer>> wanted = new ArrayList<>();
    for (int i = 0; i < 100; i++) wanted.add(new Tuple2<>(i, 5));  // half of them are there
    var joined =
        javaFunctions(context.parallelize(wanted, 2))
            .joinWithCassandraTable(
                KEYSPACE,
                "reading",
                AllColumns$.MODULE$,
                someColumns("sensor", "at"),
                GenericJavaRowReaderFactory.instance,
                mapTupleToRow(Integer.class, Integer.class))
            .collect();
    assertEquals(SENSORS, joined.size());
    joined.forEach(
        pair -> {
          assertEquals(pair._1._1, pair._2.getInt("sensor"));
          assertEquals((5 * SENSORS + pair._1._1) * 0.5, pair._2.getDouble("value"));
        });
    Dataset<Row> keys = spark.range(20).selectExpr("CAST(id AS int) AS sensor");
    assertEquals(20 * TIMES, keys.join(table("reading"), "sensor").count());
    assertEquals(1, session.execute("SELECT count(*) FROM spark.reading WHERE sensor = 5 AND at = 5").one().getLong(0));
  }

  @Test
  void collectionsAreChanged() {
    save("l", CollectionAppend$.MODULE$, List.of("b", "c"));
    save("l", CollectionPrepend$.MODULE$, List.of("a"));
    save("l", CollectionRemove$.MODULE$, List.of("c"));
    save("s", CollectionAppend$.MODULE$, Set.of("x", "y", "z"));
    save("s", CollectionRemove$.MODULE$, Set.of("y"));
    save("m", CollectionAppend$.MODULE$, Map.of("one", 1));
    save("m", CollectionAppend$.MODULE$, Map.of("two", 2));
    var row = session.execute("SELECT l, s, m FROM spark.mark WHERE k = 1").one();
    assertEquals(List.of("a", "b"), row.getList("l", String.class));
    assertEquals(Set.of("x", "z"), row.getSet("s", String.class));
    assertEquals(Map.of("one", 1, "two", 2), row.getMap("m", String.class, Integer.class));
    Row read = table("mark").filter("k = 1").select("m", "s").first();
    assertEquals(Map.of("one", 1, "two", 2), read.getJavaMap(0));
    assertEquals(Set.of("x", "z"), Set.copyOf(read.getList(1)));
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static void save(String column, CollectionBehavior behavior, Object value) {
    List<ColumnRef> columns =
        List.of(new ColumnName("k", Option.empty()), new CollectionColumnName(column, Option.empty(), behavior));
    javaFunctions(context.parallelize(List.of(new Tuple2<>(1, value))))
        .writerBuilder(KEYSPACE, "mark", (com.datastax.spark.connector.writer.RowWriterFactory) mapTupleToRow(Integer.class, Object.class))
        .withColumnSelector(new SomeColumns(JavaConverters.asScalaBuffer(columns).toSeq()))
        .saveToCassandra();
  }
}
