// SPDX-License-Identifier: Apache-2.0
package tetrad.applications;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.dao.OptimisticLockingFailureException;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;
import org.springframework.data.cassandra.SessionFactory;
import org.springframework.data.cassandra.config.SchemaAction;
import org.springframework.data.cassandra.config.SessionFactoryFactoryBean;
import org.springframework.data.cassandra.core.CassandraTemplate;
import org.springframework.data.cassandra.core.InsertOptions;
import org.springframework.data.cassandra.core.UpdateOptions;
import org.springframework.data.cassandra.core.convert.CassandraConverter;
import org.springframework.data.cassandra.core.convert.MappingCassandraConverter;
import org.springframework.data.cassandra.core.cql.Ordering;
import org.springframework.data.cassandra.core.cql.PrimaryKeyType;
import org.springframework.data.cassandra.core.mapping.CassandraMappingContext;
import org.springframework.data.cassandra.core.mapping.Column;
import org.springframework.data.cassandra.core.mapping.PrimaryKeyColumn;
import org.springframework.data.cassandra.core.mapping.SimpleUserTypeResolver;
import org.springframework.data.cassandra.core.mapping.Table;
import org.springframework.data.cassandra.core.mapping.UserDefinedType;
import org.springframework.data.cassandra.core.query.CassandraPageRequest;
import org.springframework.data.cassandra.core.query.Criteria;
import org.springframework.data.cassandra.core.query.Query;
import org.springframework.data.cassandra.core.query.Update;
import org.springframework.data.cassandra.repository.AllowFiltering;
import org.springframework.data.cassandra.repository.CassandraRepository;
import org.springframework.data.cassandra.repository.config.EnableCassandraRepositories;
import org.springframework.data.domain.Slice;
import org.springframework.data.repository.CrudRepository;

/** Spring Data: repositories, versions (conditional statements), batches, pages, types of its own. */
class SpringDataTest {
  @Table("account")
  static class Account {
    @Id String owner;
    long balance;
    @Version Long version;

    Account() {}

    Account(String owner, long balance) {
      this.owner = owner;
      this.balance = balance;
    }
  }

  @UserDefinedType("place")
  static class Place {
    String street;
    int number;

    Place() {}

    Place(String street, int number) {
      this.street = street;
      this.number = number;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Place place && number == place.number && street.equals(place.street);
    }

    @Override
    public int hashCode() {
      return Objects.hash(street, number);
    }
  }

  @Table("reading")
  static class Reading {
    @PrimaryKeyColumn(type = PrimaryKeyType.PARTITIONED, ordinal = 0)
    String sensor;

    @PrimaryKeyColumn(type = PrimaryKeyType.CLUSTERED, ordinal = 1, ordering = Ordering.DESCENDING)
    Instant at;

    double value;
    Set<String> labels;
    Map<String, Integer> counts;
    Place place;

    @Column("written_by")
    UUID writer;

    Reading() {}

    Reading(String sensor, Instant at, double value) {
      this.sensor = sensor;
      this.at = at;
      this.value = value;
    }
  }

  interface Accounts extends CrudRepository<Account, String> {}

  interface Readings extends CassandraRepository<Reading, Object> {
    List<Reading> findBySensor(String sensor);

    List<Reading> findBySensorAndAtBetween(String sensor, Instant from, Instant to);

    Optional<Reading> findFirstBySensor(String sensor);

    Slice<Reading> findBySensor(String sensor, org.springframework.data.domain.Pageable page);

    @AllowFiltering
    List<Reading> findByValueGreaterThan(double value);

    long countBySensor(String sensor);

    void deleteBySensorAndAt(String sensor, Instant at);
  }

  @Configuration
  @EnableCassandraRepositories(considerNestedRepositories = true)
  static class Application {
    @Bean
    CqlSession session() {
      return Cluster.session("spring_data");
    }

    @Bean
    CassandraMappingContext mappingContext() throws ClassNotFoundException {
      var context = new CassandraMappingContext();
      context.setInitialEntitySet(Set.of(Account.class, Reading.class, Place.class, Stand.class));
      return context;
    }

    @Bean
    CassandraConverter converter(CassandraMappingContext context, CqlSession session) {
      var converter = new MappingCassandraConverter(context);
      converter.setUserTypeResolver(new SimpleUserTypeResolver(session));
      return converter;
    }

    @Bean
    SessionFactoryFactoryBean sessionFactory(CqlSession session, CassandraConverter converter) {
      var factory = new SessionFactoryFactoryBean();
      factory.setSession(session);
      factory.setConverter(converter);
      factory.setSchemaAction(SchemaAction.CREATE_IF_NOT_EXISTS);
      return factory;
    }

    @Bean
    CassandraTemplate cassandraTemplate(SessionFactory factory, CassandraConverter converter) {
      return new CassandraTemplate(factory, converter);
    }
  }

  private static final Instant START = Instant.parse("2026-01-01T00:00:00Z");
  private static AnnotationConfigApplicationContext application;
  private static CassandraTemplate template;
  private static Accounts accounts;
  private static Readings readings;

  @BeforeAll
  static void start() {
    application = new AnnotationConfigApplicationContext(Application.class);
    template = application.getBean(CassandraTemplate.class);
    accounts = application.getBean(Accounts.class);
    readings = application.getBean(Readings.class);
  }

  @AfterAll
  static void stop() {
    application.close();
  }

  @BeforeEach
  void clear() {
    template.truncate(Account.class);
    template.truncate(Reading.class);
  }

  private static Reading reading(int number) {
    return new Reading("s", START.plusSeconds(number), number);
  }

  @Test
  void aVersionStartsAtZeroAndRises() {
    Account account = accounts.save(new Account("ada", 10));
    assertEquals(0, account.version);
    account.balance = 20;
    assertEquals(1, accounts.save(account).version);
    assertEquals(20, accounts.findById("ada").orElseThrow().balance);
  }

  @Test
  void aStaleVersionIsRefused() {
    accounts.save(new Account("ada", 10));
    Account first = accounts.findById("ada").orElseThrow();
    Account second = accounts.findById("ada").orElseThrow();
    Account third = accounts.findById("ada").orElseThrow();
    first.balance = 11;
    accounts.save(first);
    second.balance = 12;
    assertThrows(OptimisticLockingFailureException.class, () -> accounts.save(second));
    assertThrows(OptimisticLockingFailureException.class, () -> template.delete(third));
    assertEquals(11, accounts.findById("ada").orElseThrow().balance);
  }

  @Test
  void aSecondOfTheSameNameIsRefused() {
    accounts.save(new Account("ada", 10));
    assertThrows(
        OptimisticLockingFailureException.class, () -> accounts.save(new Account("ada", 99)));
  }

  @Test
  void noDepositOfEightAtOnceIsLost() throws Exception {
    accounts.save(new Account("joint", 0));
    try (var closing = new Closing(Executors.newFixedThreadPool(8))) {
      Callable<Void> deposits =
          () -> {
            for (int done = 0; done < 10; ) {
              Account account = accounts.findById("joint").orElseThrow();
              account.balance += 1;
              try {
                accounts.save(account);
                ++done;
              } catch (OptimisticLockingFailureException somebodyElseWasFaster) {
                continue;
              }
            }
            return null;
          };
      List<Future<Void>> all = new ArrayList<>();
      for (int i = 0; i < 8; ++i) all.add(closing.executor().submit(deposits));
      for (Future<Void> one : all) one.get();
    }
    Account account = accounts.findById("joint").orElseThrow();
    assertEquals(80, account.balance);
    assertEquals(80, account.version);
  }

  private record Closing(java.util.concurrent.ExecutorService executor) implements AutoCloseable {
    @Override
    public void close() {
      executor.shutdownNow();
    }
  }

  @Test
  void insertIfNotExistsSaysWhetherItWas() {
    var options = InsertOptions.builder().withIfNotExists().build();
    assertTrue(template.insert(reading(1), options).wasApplied());
    assertFalse(template.insert(reading(1), options).wasApplied());
  }

  @Test
  void updateIfConditionSaysWhetherItWas() {
    template.insert(reading(1));
    Reading changed = reading(1);
    changed.value = 7;
    var wrong =
        UpdateOptions.builder().ifCondition(Criteria.where("value").is(99.0)).build();
    var right = UpdateOptions.builder().ifCondition(Criteria.where("value").is(1.0)).build();
    assertFalse(template.update(changed, wrong).wasApplied());
    assertTrue(template.update(changed, right).wasApplied());
    assertEquals(7, readings.findFirstBySensor("s").orElseThrow().value);
  }

  @Test
  void allTypesComeBack() {
    Reading written = reading(1);
    written.labels = Set.of("a", "b");
    written.counts = new HashMap<>(Map.of("x", 1, "y", 2));
    written.place = new Place("Main Street", 5);
    written.writer = UUID.randomUUID();
    readings.save(written);
    Reading read = readings.findFirstBySensor("s").orElseThrow();
    assertEquals(written.labels, read.labels);
    assertEquals(written.counts, read.counts);
    assertEquals(written.place, read.place);
    assertEquals(written.writer, read.writer);
    assertEquals(written.at, read.at);
  }

  @Test
  void queriesOfNames() {
    IntStream.range(0, 20).forEach(i -> readings.save(reading(i)));
    assertEquals(20, readings.findBySensor("s").size());
    assertEquals(19, readings.findFirstBySensor("s").orElseThrow().value);  // descending
    assertEquals(
        5,
        readings
            .findBySensorAndAtBetween("s", START.plusSeconds(4), START.plusSeconds(10))
            .size());  // BETWEEN is without its ends
    assertEquals(4, readings.findByValueGreaterThan(15).size());
    assertEquals(20, readings.countBySensor("s"));
    readings.deleteBySensorAndAt("s", START);
    assertEquals(19, readings.countBySensor("s"));
  }

  @Test
  void pagesGoThroughAll() {
    readings.saveAll(IntStream.range(0, 25).mapToObj(SpringDataTest::reading).toList());
    List<Double> seen = new ArrayList<>();
    Slice<Reading> slice = readings.findBySensor("s", CassandraPageRequest.first(10));
    while (true) {
      slice.forEach(reading -> seen.add(reading.value));
      if (!slice.hasNext()) break;
      slice = readings.findBySensor("s", slice.nextPageable());
    }
    assertEquals(25, seen.size());
    assertEquals(24.0, seen.get(0));
    assertEquals(0.0, seen.get(24));
  }

  @Test
  void aLoggedBatchOverTwoTables() {
    template.batchOps().insert(reading(1)).insert(new Stand("p", 3)).execute();
    assertEquals(1, readings.count());
    assertEquals(3, template.selectOneById("p", Stand.class).number);
    template.batchOps().delete(reading(1)).delete(new Stand("p", 3)).execute();
    assertEquals(0, readings.count());
    assertNull(template.selectOneById("p", Stand.class));
  }

  @Test
  void anUpdateOfPartsOfCollections() {
    Reading written = reading(1);
    written.labels = Set.of("a");
    written.counts = new HashMap<>(Map.of("x", 1));
    readings.save(written);
    Query query = Query.query(Criteria.where("sensor").is("s"), Criteria.where("at").is(written.at));
    assertTrue(
        template.update(
            query,
            Update.empty().addTo("labels").append("b").addTo("counts").entry("y", 2),
            Reading.class));
    Reading read = readings.findFirstBySensor("s").orElseThrow();
    assertEquals(Set.of("a", "b"), read.labels);
    assertEquals(Map.of("x", 1, "y", 2), read.counts);
  }

  @Test
  void whatHasATimeToLiveExpires() throws Exception {
    var options = InsertOptions.builder().ttl(Duration.ofSeconds(1)).build();
    template.insert(reading(1), options);
    assertEquals(1, readings.count());
    Thread.sleep(2_100);
    assertEquals(0, readings.count());
  }

  @Table("stand")
  static class Stand {
    @Id String name;
    int number;

    Stand() {}

    Stand(String name, int number) {
      this.name = name;
      this.number = number;
    }
  }
}
