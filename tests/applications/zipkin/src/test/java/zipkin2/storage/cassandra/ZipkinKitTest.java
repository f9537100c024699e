// SPDX-License-Identifier: Apache-2.0
package zipkin2.storage.cassandra;

import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import zipkin2.Span;
import zipkin2.storage.StorageComponent;

/** Zipkin's kit of storage tests: spans, searches by SASI indexes, names, tags, links between services. */
class ZipkinKitTest {
  private static final String KEYSPACE = "zipkin_kit";

  @BeforeAll
  static void empty() {
    TetradStorage.drop(KEYSPACE);
  }

  @Nested
  class Traces extends zipkin2.storage.ITTraces<CassandraStorage> {
    @Override
    protected StorageComponent.Builder newStorageBuilder(TestInfo test) {
      return TetradStorage.builder(KEYSPACE);
    }

    @Override
    protected void checkStorage() {
      TetradStorage.mustServe(storage);
    }

    @Override
    protected void clear() {
      TetradStorage.clear(storage);
    }

    @Override
    @Test
    @Disabled("the storage for Cassandra keeps a span that is sent twice twice")
    protected void getTrace_deduplicates(TestInfo test) {}
  }

  @Nested
  class SpanStore extends zipkin2.storage.ITSpanStore<CassandraStorage> {
    @Override
    protected StorageComponent.Builder newStorageBuilder(TestInfo test) {
      return TetradStorage.builder(KEYSPACE);
    }

    @Override
    protected void checkStorage() {
      TetradStorage.mustServe(storage);
    }

    @Override
    protected void clear() {
      TetradStorage.clear(storage);
    }
  }

  @Nested
  class SearchEnabledFalse extends zipkin2.storage.ITSearchEnabledFalse<CassandraStorage> {
    @Override
    protected StorageComponent.Builder newStorageBuilder(TestInfo test) {
      return TetradStorage.builder(KEYSPACE);
    }

    @Override
    protected void checkStorage() {
      TetradStorage.mustServe(storage);
    }

    @Override
    protected void clear() {
      TetradStorage.clear(storage);
    }
  }

  @Nested
  class StrictTraceIdFalse extends zipkin2.storage.ITStrictTraceIdFalse<CassandraStorage> {
    @Override
    protected StorageComponent.Builder newStorageBuilder(TestInfo test) {
      return TetradStorage.builder(KEYSPACE);
    }

    @Override
    protected void checkStorage() {
      TetradStorage.mustServe(storage);
    }

    @Override
    protected void clear() {
      TetradStorage.clear(storage);
    }
  }

  @Nested
  class ServiceAndSpanNames extends zipkin2.storage.ITServiceAndSpanNames<CassandraStorage> {
    @Override
    protected StorageComponent.Builder newStorageBuilder(TestInfo test) {
      return TetradStorage.builder(KEYSPACE);
    }

    @Override
    protected void checkStorage() {
      TetradStorage.mustServe(storage);
    }

    @Override
    protected void clear() {
      TetradStorage.clear(storage);
    }
  }

  @Nested
  class AutocompleteTags extends zipkin2.storage.ITAutocompleteTags<CassandraStorage> {
    @Override
    protected StorageComponent.Builder newStorageBuilder(TestInfo test) {
      return TetradStorage.builder(KEYSPACE);
    }

    @Override
    protected void checkStorage() {
      TetradStorage.mustServe(storage);
    }

    @Override
    protected void clear() {
      TetradStorage.clear(storage);
    }
  }

  @Nested
  class Dependencies extends zipkin2.storage.ITDependencies<CassandraStorage> {
    @Override
    protected StorageComponent.Builder newStorageBuilder(TestInfo test) {
      return TetradStorage.builder(KEYSPACE);
    }

    @Override
    protected void checkStorage() {
      TetradStorage.mustServe(storage);
    }

    @Override
    protected void clear() {
      TetradStorage.clear(storage);
    }

    @Override
    protected void processDependencies(List<Span> spans) {
      TetradStorage.writeDependencies(storage, aggregateLinks(spans));
    }
  }
}
