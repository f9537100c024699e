// SPDX-License-Identifier: Apache-2.0
//! The Rust driver: compression, schema, types, statements, the ring, a node that dies. It speaks protocol 4 only.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use openssl::ssl::{SslConnector, SslConnectorBuilder, SslMethod};
use scylla::client::session_builder::SessionBuilder;
use scylla::client::Compression;
use scylla::cluster::metadata::{CollectionType, ColumnKind, ColumnType, NativeType, Strategy};
use scylla::deserialize::value::DeserializeValue;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::response::{PagingState, PagingStateResponse};
use scylla::serialize::value::SerializeValue;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::unprepared::Statement;
use scylla::value::{
    CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlTimeuuid, CqlVarint, MaybeUnset,
};
use uuid::Uuid;

mod scratch;
use scratch::{builder, connect_to, hosts, login, tls, variable, Scratch};

async fn wide(scratch: &Scratch) {
    scratch
        .run("CREATE TABLE wide (k int, c int, v text, PRIMARY KEY (k, c))")
        .await;
    let insert = scratch
        .session
        .prepare("INSERT INTO wide (k, c, v) VALUES (?, ?, ?)")
        .await
        .unwrap();
    for k in 0..3 {
        let mut batch = Batch::new(BatchType::Unlogged);
        let mut values = Vec::new();
        for c in 0..100 {
            batch.append_statement(insert.clone());
            values.push((k, c, format!("v{k}.{c}")));
        }
        scratch.session.batch(&batch, values).await.unwrap();
    }
}

async fn carries_rows(compression: Option<Compression>) {
    let scratch = Scratch::with(compression).await;
    scratch
        .run("CREATE TABLE ways (k int PRIMARY KEY, v text, b blob)")
        .await;
    let text = "tetrad ".repeat(30000);
    let blob: Vec<u8> = (0..200_000u32).map(|i| ((i * 7919) >> 3) as u8).collect();
    let insert = scratch
        .session
        .prepare("INSERT INTO ways (k, v, b) VALUES (?, ?, ?)")
        .await
        .unwrap();
    let select = scratch
        .session
        .prepare("SELECT v, b FROM ways WHERE k = ?")
        .await
        .unwrap();
    for key in 0..5 {
        scratch
            .session
            .execute_unpaged(&insert, (key, &text, &blob))
            .await
            .unwrap();
        let result = scratch
            .session
            .execute_unpaged(&select, (key,))
            .await
            .unwrap()
            .into_rows_result()
            .unwrap();
        let (read_text, read_blob) = result.single_row::<(String, Vec<u8>)>().unwrap();
        assert!(read_text == text && read_blob == blob);
    }
    scratch.end().await;
}

#[tokio::test]
async fn rows_go_both_ways_uncompressed() {
    carries_rows(None).await;
}

#[tokio::test]
async fn rows_go_both_ways_with_lz4() {
    carries_rows(Some(Compression::Lz4)).await;
}

#[tokio::test]
async fn rows_go_both_ways_with_snappy() {
    carries_rows(Some(Compression::Snappy)).await;
}

#[tokio::test]
async fn a_table_shows_in_the_metadata() {
    let scratch = Scratch::new().await;
    scratch
        .run(
            "CREATE TABLE shown (a int, b text, c timeuuid, s text static, m map<text, frozen<list<int>>>,
             PRIMARY KEY ((a, b), c)) WITH CLUSTERING ORDER BY (c DESC)",
        )
        .await;
    scratch.session.refresh_metadata().await.unwrap();
    let state = scratch.session.get_cluster_state();
    let keyspace = state.get_keyspace(&scratch.keyspace).expect("the keyspace");
    match &keyspace.strategy {
        Strategy::SimpleStrategy { replication_factor } => {
            assert_eq!(*replication_factor, hosts().len().min(4))
        }
        other => panic!("{other:?}"),
    }
    let table = &keyspace.tables["shown"];
    assert_eq!(table.partition_key, ["a", "b"]);
    assert_eq!(table.clustering_key, ["c"]);
    assert_eq!(table.columns["s"].kind, ColumnKind::Static);
    assert_eq!(
        table.columns["c"].typ,
        ColumnType::Native(NativeType::Timeuuid)
    );
    match &table.columns["m"].typ {
        ColumnType::Collection {
            frozen: false,
            typ: CollectionType::Map(key, value),
        } => {
            assert_eq!(**key, ColumnType::Native(NativeType::Text));
            assert!(matches!(
                &**value,
                ColumnType::Collection {
                    frozen: true,
                    typ: CollectionType::List(_)
                }
            ));
        }
        other => panic!("{other:?}"),
    }
    scratch.end().await;
}

#[tokio::test]
async fn all_nodes_agree_and_a_dropped_name_is_free_at_once() {
    let scratch = Scratch::new().await;
    for _ in 0..4 {
        scratch
            .run("CREATE TABLE reborn (k int PRIMARY KEY, v int)")
            .await;
        // Other tests change the schema meanwhile: the versions differ for moments.
        scratch.session.await_schema_agreement().await.unwrap();
        let result = scratch
            .session
            .query_unpaged("SELECT * FROM reborn", ())
            .await
            .unwrap();
        assert_eq!(result.into_rows_result().unwrap().rows_num(), 0);
        scratch.run("INSERT INTO reborn (k, v) VALUES (1, 2)").await;
        scratch.run("DROP TABLE reborn").await;
    }
    scratch.end().await;
}

/// Values of one type, each written and read back, and null.
async fn round_trip<T>(scratch: &Scratch, cql_type: &str, values: Vec<T>)
where
    T: SerializeValue + for<'a> DeserializeValue<'a, 'a> + PartialEq + std::fmt::Debug,
{
    let table: String = cql_type
        .chars()
        .map(|c| if c.is_ascii_lowercase() { c } else { '_' })
        .collect();
    scratch
        .run(&format!(
            "CREATE TABLE t_{table} (k int PRIMARY KEY, v {cql_type})"
        ))
        .await;
    let insert = scratch
        .session
        .prepare(format!("INSERT INTO t_{table} (k, v) VALUES (?, ?)"))
        .await
        .unwrap();
    let select = scratch
        .session
        .prepare(format!("SELECT v FROM t_{table} WHERE k = ?"))
        .await
        .unwrap();
    let mut expected: Vec<Option<T>> = values.into_iter().map(Some).collect();
    expected.push(None);
    for (key, value) in expected.iter().enumerate() {
        scratch
            .session
            .execute_unpaged(&insert, (key as i32, value))
            .await
            .unwrap();
    }
    for (key, value) in expected.iter().enumerate() {
        let result = scratch
            .session
            .execute_unpaged(&select, (key as i32,))
            .await
            .unwrap()
            .into_rows_result()
            .unwrap();
        let (read,) = result.single_row::<(Option<T>,)>().unwrap();
        assert_eq!(&read, value, "{cql_type}");
    }
}

#[tokio::test]
async fn numbers_come_back_as_they_went_in() {
    let scratch = Scratch::new().await;
    round_trip::<i8>(&scratch, "tinyint", vec![0, -1, i8::MAX, i8::MIN]).await;
    round_trip::<i16>(&scratch, "smallint", vec![0, -1, i16::MAX, i16::MIN]).await;
    round_trip::<i32>(&scratch, "int", vec![0, -1, i32::MAX, i32::MIN]).await;
    round_trip::<i64>(&scratch, "bigint", vec![0, -1, i64::MAX, i64::MIN]).await;
    round_trip::<f32>(&scratch, "float", vec![0.0, -2.5, f32::INFINITY]).await;
    round_trip::<f64>(
        &scratch,
        "double",
        vec![0.0, 1.5, f64::MAX, f64::MIN_POSITIVE],
    )
    .await;
    let varints = [vec![0], vec![0xff, 0x7f], vec![0x01; 30], vec![0x80]];
    round_trip(
        &scratch,
        "varint",
        varints
            .into_iter()
            .map(CqlVarint::from_signed_bytes_be)
            .collect(),
    )
    .await;
    let decimals = [(vec![110u8], 2), (vec![0xff], 6), (vec![1], -20)];
    round_trip(
        &scratch,
        "decimal",
        decimals
            .into_iter()
            .map(|(digits, scale)| CqlDecimal::from_signed_be_bytes_and_exponent(digits, scale))
            .collect(),
    )
    .await;
    scratch.end().await;
}

#[tokio::test]
async fn text_bytes_and_addresses_come_back_as_they_went_in() {
    let scratch = Scratch::new().await;
    round_trip::<String>(&scratch, "ascii", vec![String::new(), "plain".into()]).await;
    round_trip::<String>(
        &scratch,
        "text",
        vec![
            String::new(),
            "naïve 漢字 😀".into(),
            "\0".into(),
            "x".repeat(70000),
        ],
    )
    .await;
    round_trip::<String>(&scratch, "varchar", vec!["same as text".into()]).await;
    round_trip::<Vec<u8>>(&scratch, "blob", vec![vec![], vec![0, 255, 128]]).await;
    round_trip::<bool>(&scratch, "boolean", vec![true, false]).await;
    let addresses: Vec<IpAddr> = vec!["127.0.0.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
    round_trip(&scratch, "inet", addresses).await;
    round_trip(
        &scratch,
        "uuid",
        vec![Uuid::nil(), Uuid::max(), Uuid::new_v4()],
    )
    .await;
    let timeuuid: CqlTimeuuid = "d2177dd0-eaa2-11de-a572-001b779c76e3".parse().unwrap();
    round_trip(&scratch, "timeuuid", vec![timeuuid]).await;
    scratch.end().await;
}

#[tokio::test]
async fn times_come_back_as_they_went_in() {
    let scratch = Scratch::new().await;
    round_trip(
        &scratch,
        "date",
        vec![CqlDate(1 << 31), CqlDate(0), CqlDate(u32::MAX)],
    )
    .await;
    round_trip(
        &scratch,
        "time",
        vec![CqlTime(0), CqlTime(86_399_999_999_999)],
    )
    .await;
    round_trip(
        &scratch,
        "timestamp",
        vec![
            CqlTimestamp(0),
            CqlTimestamp(-1),
            CqlTimestamp(1_709_210_096_789),
        ],
    )
    .await;
    let durations = [(1, 2, 3), (-1, -2, -3), (0, 0, i64::MAX)];
    round_trip(
        &scratch,
        "duration",
        durations
            .into_iter()
            .map(|(months, days, nanoseconds)| CqlDuration {
                months,
                days,
                nanoseconds,
            })
            .collect(),
    )
    .await;
    scratch.end().await;
}

#[tokio::test]
async fn collections_and_tuples_come_back_as_they_went_in() {
    let scratch = Scratch::new().await;
    round_trip(&scratch, "list<int>", vec![vec![3, 1, 2, 1]]).await;
    round_trip(
        &scratch,
        "set<text>",
        vec![HashSet::from(["a".to_string(), "b".into(), "é".into()])],
    )
    .await;
    round_trip(
        &scratch,
        "map<text, int>",
        vec![HashMap::from([(String::new(), 1), ("x".into(), 2)])],
    )
    .await;
    round_trip(
        &scratch,
        "frozen<list<frozen<map<int, text>>>>",
        vec![vec![
            BTreeMap::from([(1, "a".to_string())]),
            BTreeMap::from([(-1, "b".to_string()), (2, String::new())]),
        ]],
    )
    .await;
    round_trip(
        &scratch,
        "tuple<int, text, boolean>",
        vec![(1, "one".to_string(), None), (2, String::new(), Some(true))],
    )
    .await;
    scratch.end().await;
}

#[tokio::test]
async fn unset_leaves_a_column_and_null_removes_it() {
    let scratch = Scratch::new().await;
    scratch
        .run("CREATE TABLE unset (k int PRIMARY KEY, v int)")
        .await;
    let insert = scratch
        .session
        .prepare("INSERT INTO unset (k, v) VALUES (?, ?)")
        .await
        .unwrap();
    for (value, expected) in [
        (MaybeUnset::Set(Some(5)), Some(5)),
        (MaybeUnset::Unset, Some(5)),
        (MaybeUnset::Set(None), None),
    ] {
        scratch
            .session
            .execute_unpaged(&insert, (1, value))
            .await
            .unwrap();
        let result = scratch
            .session
            .query_unpaged("SELECT v FROM unset", ())
            .await
            .unwrap()
            .into_rows_result()
            .unwrap();
        assert_eq!(result.single_row::<(Option<i32>,)>().unwrap().0, expected);
    }
    scratch.end().await;
}

#[tokio::test]
async fn pages_hold_every_row_once() {
    let scratch = Scratch::new().await;
    wide(&scratch).await;
    for size in [1, 7, 299, 300, 5000] {
        let statement = Statement::new("SELECT k, c FROM wide").with_page_size(size);
        let rows: Vec<(i32, i32)> = scratch
            .session
            .query_iter(statement, ())
            .await
            .unwrap()
            .rows_stream::<(i32, i32)>()
            .unwrap()
            .try_collect()
            .await
            .unwrap();
        assert_eq!(rows.len(), 300);
        assert_eq!(rows.into_iter().collect::<HashSet<_>>().len(), 300);
    }
    let mut select = scratch
        .session
        .prepare("SELECT c FROM wide WHERE k = ? ORDER BY c DESC")
        .await
        .unwrap();
    select.set_page_size(30);
    let (mut state, mut seen) = (PagingState::start(), Vec::new());
    loop {
        let (result, next) = scratch
            .session
            .execute_single_page(&select, (1,), state)
            .await
            .unwrap();
        for row in result.into_rows_result().unwrap().rows::<(i32,)>().unwrap() {
            seen.push(row.unwrap().0);
        }
        match next {
            PagingStateResponse::HasMorePages { state: next } => state = next,
            PagingStateResponse::NoMorePages => break,
        }
    }
    assert_eq!(seen, (0..100).rev().collect::<Vec<i32>>());
    scratch.end().await;
}

#[tokio::test]
async fn batches_of_both_kinds_in_one_partition() {
    let scratch = Scratch::new().await;
    scratch
        .run("CREATE TABLE batched (k int, c int, v text, PRIMARY KEY (k, c))")
        .await;
    let insert = scratch
        .session
        .prepare("INSERT INTO batched (k, c, v) VALUES (?, ?, 'v')")
        .await
        .unwrap();
    for (key, kind) in [(1, BatchType::Logged), (2, BatchType::Unlogged)] {
        let mut batch = Batch::new(kind);
        batch.set_timestamp(Some(1000 + i64::from(key)));
        for _ in 0..10 {
            batch.append_statement(insert.clone());
        }
        batch.append_statement("DELETE FROM batched WHERE k = ? AND c = ?");
        let mut values: Vec<(i32, i32)> = (0..10).map(|c| (key, c)).collect();
        values.push((key, 5));
        scratch.session.batch(&batch, values).await.unwrap();
        let result = scratch
            .session
            .query_unpaged(
                "SELECT count(*), min(writetime(v)) FROM batched WHERE k = ?",
                (key,),
            )
            .await
            .unwrap()
            .into_rows_result()
            .unwrap();
        assert_eq!(
            result.single_row::<(i64, i64)>().unwrap(),
            (9, 1000 + i64::from(key))
        );
    }
    scratch.end().await;
}

#[tokio::test]
async fn errors_have_their_kind_and_words() {
    let scratch = Scratch::new().await;
    for (statement, kind, words) in [
        (
            "SELEC * FROM wide",
            "syntax",
            "no viable alternative at input 'SELEC'",
        ),
        (
            "SELECT * FROM nosuchtable",
            "invalid",
            "table nosuchtable does not exist",
        ),
        (
            "SELECT nosuch FROM system.local",
            "invalid",
            "Undefined column name nosuch",
        ),
        (
            "SELECT * FROM system.local WHERE rack = 'x'",
            "invalid",
            "ALLOW FILTERING",
        ),
    ] {
        match scratch.session.query_unpaged(statement, ()).await {
            Err(ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, message))) => {
                let got = match error {
                    DbError::SyntaxError => "syntax",
                    DbError::Invalid => "invalid",
                    _ => "another",
                };
                assert_eq!(got, kind, "{statement}: {message}");
                assert!(message.contains(words), "{statement}: {message}");
            }
            other => panic!("{statement}: {other:?}"),
        }
    }
    scratch.run("CREATE TABLE once (k int PRIMARY KEY)").await;
    match scratch
        .session
        .query_unpaged("CREATE TABLE once (k int PRIMARY KEY)", ())
        .await
    {
        Err(ExecutionError::LastAttemptError(RequestAttemptError::DbError(
            DbError::AlreadyExists { keyspace, table },
            _,
        ))) => {
            assert_eq!(
                (keyspace, table),
                (scratch.keyspace.clone(), "once".to_string())
            );
        }
        other => panic!("{other:?}"),
    }
    scratch.end().await;
}

#[tokio::test]
async fn a_scan_that_aggregates_warns() {
    let scratch = Scratch::new().await;
    wide(&scratch).await;
    let result = scratch
        .session
        .query_unpaged("SELECT max(c) FROM wide", ())
        .await
        .unwrap();
    assert!(result
        .warnings()
        .any(|text| text.contains("Aggregation query used without partition key")));
    scratch.end().await;
}

#[tokio::test]
async fn the_ring_is_known_and_requests_go_to_a_replica() {
    let scratch = Scratch::new().await;
    let state = scratch.session.get_cluster_state();
    assert!(state.get_nodes_info().len() >= hosts().len());
    for node in state.get_nodes_info() {
        assert!(node.datacenter.is_some() && node.rack.is_some());
    }
    scratch
        .run("CREATE TABLE routed (k text PRIMARY KEY, v int)")
        .await;
    scratch.session.refresh_metadata().await.unwrap();
    let state = scratch.session.get_cluster_state();
    let insert = scratch
        .session
        .prepare("INSERT INTO routed (k, v) VALUES (?, ?)")
        .await
        .unwrap();
    let select = scratch
        .session
        .prepare("SELECT token(k) FROM routed WHERE k = ?")
        .await
        .unwrap();
    assert!(insert.is_token_aware());
    for number in 0..100 {
        let key = format!("é{number}");
        let result = scratch
            .session
            .execute_unpaged(&insert, (&key, number))
            .await
            .unwrap();
        let replicas = state
            .get_endpoints(&scratch.keyspace, "routed", &(&key,))
            .unwrap();
        let asked = result.request_coordinator().node().host_id;
        assert!(
            replicas.iter().any(|(node, _)| node.host_id == asked),
            "{key}"
        );
        let result = scratch
            .session
            .execute_unpaged(&select, (&key,))
            .await
            .unwrap()
            .into_rows_result()
            .unwrap();
        let token = state
            .compute_token(&scratch.keyspace, "routed", &(&key,))
            .unwrap();
        assert_eq!(result.single_row::<(i64,)>().unwrap().0, token.value());
    }
    scratch.end().await;
}

fn shell(command: &str) {
    let status = Command::new("sh")
        .args(["-c", command])
        .stdout(Stdio::null())
        .status()
        .expect(command);
    assert!(status.success(), "{command}");
}

async fn until(what: &str, seconds: u64, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while !condition() {
        assert!(Instant::now() < deadline, "not within {seconds} s: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Ignored unless asked for: it needs a cluster whose node may be killed, and no other test beside it.
#[tokio::test]
#[ignore]
async fn a_node_that_dies_goes_down_and_comes_up_while_requests_go_on() {
    let (node, kill, start) = (
        variable("TETRAD_TEST_NODE", ""),
        variable("TETRAD_TEST_NODE_KILL", ""),
        variable("TETRAD_TEST_NODE_START", ""),
    );
    let others: Vec<String> = hosts().into_iter().filter(|host| *host != node).collect();
    let scratch = Scratch::new().await;
    let session = Arc::new(connect_to(&others, None).await);
    session
        .use_keyspace(&scratch.keyspace, false)
        .await
        .unwrap();
    let address: IpAddr = node.parse().expect("TETRAD_TEST_NODE is an address");
    let connected = |expected: bool| {
        let state = session.get_cluster_state();
        let found = state
            .get_nodes_info()
            .iter()
            .any(|node| node.address.ip() == address && node.is_connected());
        found == expected
    };
    scratch
        .run("CREATE TABLE through (k int PRIMARY KEY, v int)")
        .await;
    until("the node is up before the test", 30, || connected(true)).await;
    let mut insert = session
        .prepare("INSERT INTO through (k, v) VALUES (?, ?)")
        .await
        .unwrap();
    insert.set_is_idempotent(true);
    shell(&kill);
    for key in 0..200 {
        session.execute_unpaged(&insert, (key, key)).await.unwrap();
    }
    until("the driver sees the node down", 60, || connected(false)).await;
    shell(&start);
    until("the driver sees the node up", 90, || connected(true)).await;
    let result = session
        .query_unpaged("SELECT count(*) FROM through", ())
        .await
        .unwrap()
        .into_rows_result()
        .unwrap();
    assert_eq!(result.single_row::<(i64,)>().unwrap().0, 200);
    scratch.end().await;
}

#[tokio::test]
async fn a_wrong_password_and_an_authority_that_is_not_the_servers_are_refused() {
    let refused = |builder: SessionBuilder| async move {
        let ends = tokio::time::timeout(Duration::from_secs(60), builder.build()).await;
        ends.expect("an answer").is_err()
    };
    let first = &hosts()[..1]; // failed logins of an address are counted
    if let Some((user, password)) = login() {
        let wrong = builder(first).user(user, format!("{password}?"));
        assert!(refused(wrong).await, "a wrong password");
    }
    if tls().is_some() {
        // The authorities of the machine did not sign the servers' certificates.
        let strangers = SslConnector::builder(SslMethod::tls_client()).unwrap();
        let wrong = builder(first).tls_context(Some(strangers));
        assert!(refused(wrong).await, "another authority");
        let plain: Option<SslConnectorBuilder> = None;
        let without = builder(first).tls_context(plain);
        assert!(refused(without).await, "without TLS");
    }
}
