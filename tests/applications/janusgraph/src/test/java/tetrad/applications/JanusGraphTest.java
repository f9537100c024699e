// SPDX-License-Identifier: Apache-2.0
package tetrad.applications;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.datastax.oss.driver.api.core.CqlSession;
import java.net.InetSocketAddress;
import org.apache.tinkerpop.gremlin.process.traversal.P;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.__;
import org.apache.tinkerpop.gremlin.structure.Direction;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.janusgraph.core.Cardinality;
import org.janusgraph.core.JanusGraph;
import org.janusgraph.core.JanusGraphFactory;
import org.janusgraph.core.Multiplicity;
import org.janusgraph.core.schema.ConsistencyModifier;
import org.janusgraph.core.schema.JanusGraphManagement;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;

/** A graph of towns on a ring of roads: made, walked, opened again, changed, dropped. */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class JanusGraphTest {
  private static final String KEYSPACE = "janusgraph_towns";
  private static final String HOST = System.getenv().getOrDefault("TETRAD_HOST", "127.0.0.1");
  private static final String DATA_CENTER = System.getenv().getOrDefault("TETRAD_DC", "datacenter1");
  private static final int TOWNS = 200;

  private static JanusGraph graph;

  private static CqlSession connect() {
    return CqlSession.builder()
        .addContactPoint(new InetSocketAddress(HOST, 9042))
        .withLocalDatacenter(DATA_CENTER)
        .build();
  }

  private static boolean isThere() {
    try (CqlSession session = connect()) {
      return session.getMetadata().getKeyspace(KEYSPACE).isPresent();
    }
  }

  private static JanusGraph open() {
    return JanusGraphFactory.build()
        .set("storage.backend", "cql")
        .set("storage.hostname", HOST)
        .set("storage.cql.local-datacenter", DATA_CENTER)
        .set("storage.cql.keyspace", KEYSPACE)
        .set("storage.cql.replication-factor", 3)
        .set("storage.cql.read-consistency-level", "LOCAL_QUORUM")
        .set("storage.cql.write-consistency-level", "LOCAL_QUORUM")
        .set("query.smart-limit", false)
        .open();
  }

  @BeforeAll
  static void make() {
    try (CqlSession session = connect()) {
      session.execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
    }
    graph = open();
    JanusGraphManagement management = graph.openManagement();
    var name = management.makePropertyKey("name").dataType(String.class).cardinality(Cardinality.SINGLE).make();
    management.makePropertyKey("people").dataType(Integer.class).cardinality(Cardinality.SINGLE).make();
    management.makePropertyKey("alias").dataType(String.class).cardinality(Cardinality.SET).make();
    var length = management.makePropertyKey("length").dataType(Integer.class).make();
    management.makeVertexLabel("town").make();
    var road = management.makeEdgeLabel("road").multiplicity(Multiplicity.SIMPLE).make();
    // A unique index: a writer takes a lock in the store.
    var byName = management.buildIndex("byName", Vertex.class).addKey(name).unique().buildCompositeIndex();
    management.setConsistency(byName, ConsistencyModifier.LOCK);
    management.buildEdgeIndex(road, "byLength", Direction.BOTH, length);
    management.commit();
    GraphTraversalSource g = graph.traversal();
    Vertex[] towns = new Vertex[TOWNS];
    for (int i = 0; i < TOWNS; i++) {
      towns[i] = g.addV("town").property("name", "town " + i).property("people", i * 10).next();
    }
    for (int i = 0; i < TOWNS; i++) {
      g.addE("road").from(towns[i]).to(towns[(i + 1) % TOWNS]).property("length", i % 7).iterate();
    }
    g.tx().commit();
  }

  @AfterAll
  static void close() {
    if (graph.isOpen()) graph.close();
  }

  private static void expectTowns() {
    GraphTraversalSource g = graph.traversal();
    assertEquals((long) TOWNS, g.V().count().next());
    assertEquals((long) TOWNS, g.E().count().next());
    assertEquals(70, g.V().has("name", "town 7").values("people").next());
    assertEquals("town 12", g.V().has("name", "town 7").repeat(__.out("road")).times(5).values("name").next());
    assertEquals((long) TOWNS / 2, g.V().hasLabel("town").has("people", P.gte(TOWNS * 5)).count().next());
    assertEquals(2L, g.V().has("name", "town 0").both("road").count().next());
    assertEquals(1L, g.V().has("name", "town 3").outE("road").has("length", 3).count().next());
    assertFalse(g.V().has("name", "nowhere").hasNext());
    g.tx().rollback();
  }

  @Test
  @Order(1)
  void whatWasMadeIsWalked() {
    expectTowns();
  }

  @Test
  @Order(2)
  void aGraphIsOpenedAgain() {
    graph.close();
    graph = open();
    expectTowns();
  }

  @Test
  @Order(3)
  void aUniqueNameIsGivenOnce() {
    GraphTraversalSource g = graph.traversal();
    try {
      g.addV("town").property("name", "town 5").iterate();
      g.tx().commit();
      throw new AssertionError("two towns of one name");
    } catch (org.janusgraph.core.SchemaViolationException expected) {
      g.tx().rollback();
    }
    assertEquals(1L, g.V().has("name", "town 5").count().next());
    g.tx().rollback();
  }

  @Test
  @Order(4)
  void townsAndRoadsAreChangedAndRemoved() {
    GraphTraversalSource g = graph.traversal();
    g.V().has("name", "town 1").property("people", 1).property("alias", "one").property("alias", "first").iterate();
    g.V().has("name", "town 2").drop().iterate();
    g.tx().commit();
    g = graph.traversal();
    assertEquals(1, g.V().has("name", "town 1").values("people").next());
    assertEquals(2L, g.V().has("name", "town 1").values("alias").count().next());
    assertFalse(g.V().has("name", "town 1").out("road").hasNext());
    assertEquals((long) TOWNS - 1, g.V().count().next());
    assertEquals((long) TOWNS - 2, g.E().count().next());
    g.tx().rollback();
  }

  @Test
  @Order(5)
  void aDroppedGraphLeavesNothing() throws Exception {
    JanusGraphFactory.drop(graph);
    assertFalse(isThere());
  }
}
