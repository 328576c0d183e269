//! The OpenAPI document of the server, against which every answer in these tests is checked.

use crate::harness::{Answer, Server};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// The document, which does not depend on the store.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let server = Server::start();
    let agent = ureq::agent();
    let mut answer = agent.get(format!("http://{}/api/v1/openapi.json", server.address)).call().unwrap();
    serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
});

/// All operations: method, and path below `/api/v1` with parameters in braces.
pub(crate) fn operations() -> Vec<(String, String)> {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let of = |(path, item): (&String, &Value)| {
        let methods = item.as_object().unwrap().keys().filter(|key| *key != "parameters");
        methods.map(|method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

fn operation(method: &str, template: &str) -> &'static Value {
    &DOCUMENT["paths"][template][method.to_lowercase()]
}

/// Returns who may call an operation, by the document. Each alternative is the scope of a token, or none where no token is needed.
/// Returns none if the document says nothing.
pub(crate) fn security(method: &str, template: &str) -> Option<Vec<Option<String>>> {
    let alternatives = operation(method, template)["security"].as_array()?;
    let scope = |alternative: &Value| {
        let scope = alternative.get("token")?[0].as_str();
        Some(scope.unwrap_or_else(|| panic!("{method} {template}: a token without a scope")).to_owned())
    };
    Some(alternatives.iter().map(scope).collect())
}

/// Returns the names of an operation's query parameters.
pub(crate) fn query_parameters(method: &str, template: &str) -> Vec<&'static str> {
    let all = operation(method, template)["parameters"].as_array().into_iter().flatten();
    let of_query = all.filter(|parameter| parameter["in"] == "query");
    of_query.map(|parameter| parameter["name"].as_str().unwrap()).collect()
}

/// Checks an answer against the documented status, content type and schema of its operation.
pub(crate) fn check(method: &str, path: &str, answer: &Answer) {
    let path = path.split('?').next().unwrap();
    if path.starts_with("//") || path == "/openapi.json" {
        return;
    }
    assert!(answer.headers.contains_key("x-request-id"), "{method} {path}: an answer without a name");
    let Some(operation) = find(method, path) else {
        // Undocumented requests are answered with a problem.
        assert!(
            [400, 401, 403, 404, 405, 429, 503].contains(&answer.status),
            "{method} {path}: {}",
            answer.status
        );
        if method != "HEAD" {
            assert_schema(method, path, &json!({ "$ref": "#/components/schemas/ProblemDetails" }), answer);
        }
        return;
    };
    let responses = &operation["responses"];
    let response = match responses.get(answer.status.to_string()) {
        Some(response) => response,
        None if answer.status >= 400 => &responses["default"],
        None => panic!("{method} {path}: the document knows no {}: {}", answer.status, answer.text()),
    };
    let Some(content) = response["content"].as_object() else {
        assert_eq!(answer.body, b"", "{method} {path}: a body that the document does not know");
        return;
    };
    if method == "HEAD" {
        return;
    }
    let (kind, content) = content.iter().next().unwrap();
    let has = answer.header("content-type").unwrap_or_default();
    assert_eq!(has.split(';').next().unwrap(), kind, "{method} {path}: {}", answer.text());
    if kind.ends_with("json") && answer.header("content-encoding").is_none() {
        assert_schema(method, path, &content["schema"], answer);
    }
}

#[test]
fn ranges_of_parameters_are_documented() {
    let server = Server::start();
    let owner = server.owner();
    let parameter = |path: &str, name: &str| {
        let all = operation("GET", path)["parameters"].as_array().unwrap();
        all.iter().find(|parameter| parameter["name"] == name).unwrap()
    };
    for (path, most) in [("/runs", 1000_u32), ("/history", 10_000)] {
        let limit = &parameter(path, "limit")["schema"];
        let range = [&limit["minimum"], &limit["maximum"]].map(Value::as_f64);
        assert_eq!(range, [Some(1.0), Some(f64::from(most))], "{path}");
        let status = |limit: u32| owner.get(&format!("{path}?limit={limit}")).status;
        assert_eq!([0, 1, most, most + 1].map(status), [400, 200, 200, 400], "{path}");
    }
    for name in ["since", "until"] {
        let last = "9999-12-30T22:00:00Z";
        assert!(parameter("/runs", name)["description"].as_str().unwrap().contains(last));
        assert_eq!(owner.get(&format!("/runs?{name}={last}")).status, 200);
        let refused = owner.get(&format!("/runs?{name}=9999-12-30T22:00:01Z")).problem(400);
        assert!(refused.contains(last), "{refused}");
    }
}

#[test]
fn ranges_of_progress_are_documented() {
    let fields = &DOCUMENT["components"]["schemas"]["RunProgress"]["properties"];
    let bounds = |field: &str, names: [&str; 2]| names.map(|name| fields[field][name].as_f64());
    let whole = ["minimum", "maximum"];
    assert_eq!(bounds("repeat", whole), [Some(1.0), None]);
    assert_eq!(bounds("step", whole), [Some(0.0), Some(1e8)]);
    assert_eq!(bounds("steps", whole), [Some(1.0), Some(1e8)]);
    for field in ["step_time_s", "planned_s"] {
        assert_eq!(bounds(field, ["minimum", "exclusiveMaximum"]), [Some(1e-6), Some(1e9)], "{field}");
    }
}

fn find(method: &str, path: &str) -> Option<&'static Value> {
    let wanted: Vec<&str> = path.split('/').collect();
    let is_path = |known: &str| {
        let known: Vec<&str> = known.split('/').collect();
        known.len() == wanted.len()
            && known.iter().zip(&wanted).all(|(known, part)| known.starts_with('{') || known == part)
    };
    let (_, item) = DOCUMENT["paths"].as_object()?.iter().find(|(known, _)| is_path(known))?;
    item.get(method.to_lowercase())
}

fn assert_schema(method: &str, path: &str, schema: &Value, answer: &Answer) {
    let mut schema = schema.clone();
    schema["components"] = DOCUMENT["components"].clone();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    if let Err(error) = validator.validate(&answer.json()) {
        panic!("{method} {path}: {error} at {}: {}", error.instance_path(), answer.text());
    }
}
