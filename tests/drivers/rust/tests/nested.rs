// SPDX-License-Identifier: Apache-2.0
//! The Rust driver: user types, tuples, vectors and collections inside one another, JSON, traces, warnings.

use std::collections::{BTreeMap, HashMap, HashSet};

use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::unprepared::Statement;
use scylla::{DeserializeValue, SerializeValue};

mod scratch;
use scratch::Scratch;

#[derive(Clone, Debug, PartialEq, SerializeValue, DeserializeValue)]
struct Street {
    name: Option<String>,
    number: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, SerializeValue, DeserializeValue)]
struct Address {
    street: Option<Street>,
    zip: Option<String>,
    phones: Option<HashMap<String, Vec<String>>>,
}

fn home(number: i32) -> Address {
    Address {
        street: Some(Street {
            name: Some("Main".to_string()),
            number: Some(number),
        }),
        zip: Some("10115".to_string()),
        phones: Some(HashMap::from([(
            "work".to_string(),
            vec!["1".to_string(), "2".to_string()],
        )])),
    }
}

async fn with_people() -> Scratch {
    let scratch = Scratch::new().await;
    scratch
        .run("CREATE TYPE street (name text, number int)")
        .await;
    scratch
        .run("CREATE TYPE address (street frozen<street>, zip text, phones frozen<map<text, frozen<list<text>>>>)")
        .await;
    scratch
        .run("CREATE TABLE people (k int PRIMARY KEY, home frozen<address>, free address, every list<frozen<address>>)")
        .await;
    scratch
}

#[tokio::test]
async fn user_types_inside_user_types_and_collections_come_back() {
    let scratch = with_people().await;
    let insert = "INSERT INTO people (k, home, free, every) VALUES (?, ?, ?, ?)";
    let insert = scratch.session.prepare(insert).await.unwrap();
    let every = vec![home(3), home(4)];
    scratch
        .session
        .execute_unpaged(&insert, (1, home(1), home(2), &every))
        .await
        .unwrap();
    scratch
        .run("UPDATE people SET free.zip = '2', free.phones = null WHERE k = 1")
        .await;
    let rows = scratch
        .session
        .query_unpaged("SELECT home, free, every, free.zip FROM people", ())
        .await
        .unwrap()
        .into_rows_result()
        .unwrap();
    let (frozen, free, list, zip) = rows
        .single_row::<(Address, Address, Vec<Address>, String)>()
        .unwrap();
    assert_eq!(frozen, home(1));
    assert_eq!(list, every);
    assert_eq!(zip, "2");
    assert_eq!(free.street, home(2).street);
    assert_eq!(free.phones, None);
    assert!(scratch
        .session
        .query_unpaged("UPDATE people SET home.zip = 'x' WHERE k = 1", ())
        .await
        .is_err());
    scratch.end().await;
}

type Deep = HashMap<String, Vec<BTreeMap<i32, HashSet<String>>>>;

#[tokio::test]
async fn collections_tuples_and_vectors_nest() {
    let scratch = Scratch::new().await;
    scratch
        .run("CREATE TABLE deep (k int PRIMARY KEY, v map<text, frozen<list<frozen<map<int, frozen<set<text>>>>>>>, t tuple<int, frozen<tuple<text, boolean>>>, f vector<float, 3>, w vector<text, 2>)")
        .await;
    let deep: Deep = HashMap::from([
        (
            "a".to_string(),
            vec![
                BTreeMap::from([(1, HashSet::from(["x".to_string()]))]),
                BTreeMap::new(),
            ],
        ),
        ("b".to_string(), vec![]),
    ]);
    let tuple = (7, ("seven".to_string(), true));
    let floats = vec![0.5f32, -1.0, 2.25];
    let texts = vec![String::new(), "second".to_string()];
    let insert = "INSERT INTO deep (k, v, t, f, w) VALUES (1, ?, ?, ?, ?)";
    let insert = scratch.session.prepare(insert).await.unwrap();
    scratch
        .session
        .execute_unpaged(&insert, (&deep, &tuple, &floats, &texts))
        .await
        .unwrap();
    let rows = scratch
        .session
        .query_unpaged("SELECT v, t, f, w FROM deep WHERE k = 1", ())
        .await
        .unwrap()
        .into_rows_result()
        .unwrap();
    let row = rows
        .single_row::<(Deep, (i32, (String, bool)), Vec<f32>, Vec<String>)>()
        .unwrap();
    assert_eq!(row, (deep, tuple, floats, texts));
    scratch.end().await;
}

#[tokio::test]
async fn json_goes_in_and_out() {
    let scratch = with_people().await;
    let text =
        r#"{"k": 70, "home": {"street": {"name": "J", "number": 7}, "zip": "z", "phones": null}}"#;
    scratch
        .session
        .query_unpaged("INSERT INTO people JSON ?", (text,))
        .await
        .unwrap();
    let rows = scratch
        .session
        .query_unpaged("SELECT JSON k, home FROM people WHERE k = 70", ())
        .await
        .unwrap()
        .into_rows_result()
        .unwrap();
    assert_eq!(rows.single_row::<(String,)>().unwrap().0, text);
    scratch.end().await;
}

#[tokio::test]
async fn simple_and_prepared_requests_are_traced() {
    let scratch = with_people().await;
    let mut insert = Statement::new("INSERT INTO people (k) VALUES (1)");
    insert.set_tracing(true);
    let mut select = scratch
        .session
        .prepare("SELECT * FROM people")
        .await
        .unwrap();
    select.set_tracing(true);
    let simple = scratch.session.query_unpaged(insert, ()).await.unwrap();
    let prepared = scratch.session.execute_unpaged(&select, ()).await.unwrap();
    for result in [simple, prepared] {
        let id = result.tracing_id().expect("a tracing id");
        let trace = scratch.session.get_tracing_info(&id).await.unwrap();
        assert!(trace.duration.unwrap() > 0);
        assert!(trace.coordinator.is_some() && trace.started_at.is_some());
        assert!(trace.events.len() >= 2);
        assert!(trace
            .events
            .iter()
            .all(|event| event.activity.is_some() && event.source.is_some()));
    }
    scratch.end().await;
}

#[tokio::test]
async fn a_batch_that_is_too_wide_warns() {
    let scratch = Scratch::new().await;
    scratch
        .run("CREATE TABLE warned (k int PRIMARY KEY, v text)")
        .await;
    let insert = "INSERT INTO warned (k, v) VALUES (?, ?)";
    let insert = scratch.session.prepare(insert).await.unwrap();
    let mut batch = Batch::new(BatchType::Unlogged);
    let mut values = Vec::new();
    for k in 0..12 {
        batch.append_statement(insert.clone());
        values.push((k, "x".repeat(600)));
    }
    let result = scratch.session.batch(&batch, values).await.unwrap();
    let warnings: Vec<&str> = result.warnings().collect();
    assert!(warnings
        .iter()
        .any(|text| text.contains("exceeding specified threshold")));
    assert!(warnings
        .iter()
        .any(|text| text.contains("Unlogged batch covering 12 partitions")));
    scratch.end().await;
}
