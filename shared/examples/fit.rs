use std::collections::{BTreeMap, BTreeSet};
use trainplan_shared::calibration::fit::{Point, fit, points, predict};
use trainplan_shared::estimate::{Breakdown, Constant, Constants};
use trainplan_shared::measurements::{Measurement, embedded};

fn class(row: &Measurement) -> String {
    let s = row.subject.as_ref().unwrap();
    let moe = s.architecture.moe.is_some();
    match &*row.source {
        "megatron-bridge" | "nemo-docs" | "dgxc-seed" | "dgxc-upstream" | "mlperf" => {
            if moe { "nv-moe".into() } else { "nv-dense".into() }
        }
        other => format!("{other}{}", if moe { "-moe" } else { "" }),
    }
}
fn report(title: &str, pairs: &[(&Measurement, f64)]) {
    println!("== {title}");
    let mut by: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (row, pred) in pairs {
        let e = pred / row.step_time_s.unwrap() - 1.0;
        by.entry(class(row)).or_default().push(e);
        if class(row).starts_with("nv-") { by.entry(format!("   {} {}", class(row), row.source)).or_default().push(e); }
    }
    for (k, mut v) in by {
        let n = v.len();
        let bias = v.iter().sum::<f64>() / n as f64;
        let mut a: Vec<f64> = v.iter().map(|e| e.abs()).collect();
        a.sort_by(f64::total_cmp);
        v.sort_by(f64::total_cmp);
        println!("{k:42} n {n:4} mape {:6.2} median {:6.2} p90 {:6.2} max {:6.2} bias {:6.2}", 100.0 * a.iter().sum::<f64>() / n as f64, 100.0 * a[n / 2], 100.0 * a[(n * 9 / 10).min(n - 1)], 100.0 * a[n - 1], 100.0 * bias);
    }
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mode = args.get(1).map_or("fit", |s| s.as_str());
    let rows: Vec<&Measurement> = embedded().iter().filter(|r| matches!(&*r.usage, "fit" | "small") && r.subject.is_ok() && r.step_time_s.is_some()).collect();
    let all = Constant::all();
    let pts = points(rows.iter().copied());
    let start: Vec<f64> = all.iter().map(|c| if args.iter().any(|a| a == "fresh") { c.prior } else { c.value }).collect();
    let noise = 0.05;
    let t = std::time::Instant::now();
    let values = fit(&all, &start, &pts, noise, 40);
    println!("fit {:?}", t.elapsed());
    for (c, v) in all.iter().zip(&values) { println!("{:28} {:12.5e} prior {:10.4e} z {:5.2}", c.name, v, c.prior, (v / c.prior).ln() / c.spread); }
    let k = Constants::verbatim(&all, &values);
    let pairs: Vec<_> = rows.iter().map(|r| (*r, predict(r, &k).unwrap())).collect();
    report("in sample", &pairs);
    if args.iter().any(|a| a == "save") {
        let text = std::fs::read_to_string("shared/data/calibration.csv").unwrap();
        let mut out = String::new();
        for line in text.lines() {
            match all.iter().position(|c| line.starts_with(&format!("{},", c.name))) {
                Some(i) => { let mut p: Vec<String> = line.splitn(3, ',').map(String::from).collect(); p[1] = format!("{:.7e}", values[i]); out += &p.join(","); }
                None => out += line,
            }
            out.push('\n');
        }
        std::fs::write("shared/data/calibration.csv", out).unwrap();
    }
    if args.iter().any(|a| a == "rows") {
        let want = args.last().unwrap();
        for (r, p) in &pairs {
            if !(class(r).starts_with(want.as_str()) || r.source.starts_with(want.as_str())) { continue; }
            let s = r.subject.as_ref().unwrap();
            let b = Breakdown::of(&s.inputs(), &k);
            let l = &s.layout;
            println!("{:6.1}% {} {} {} {} {} {} s{} n{} tp{} pp{} cp{} ep{} vp{} mbs{} ga{} {} t={:.3} | {}", 100.0 * (p / r.step_time_s.unwrap() - 1.0), r.id, r.release, r.model, s.architecture.layers, r.gpu, r.precision, s.batch.seq_len(), l.gpus(), l.tp(), l.pp(), l.cp(), l.ep(), l.vp(), s.batch.mbs(), s.batch.ga(), s.options.recompute, r.step_time_s.unwrap(),
                b.parts().iter().filter(|(_, v)| v / p > 0.005).map(|(n, v)| format!("{} {:.0}%", &n.chars().take(9).collect::<String>(), 100.0 * v / p)).collect::<Vec<_>>().join(" "));
        }
    }
    if args.iter().any(|a| a == "groups") {
        let mut by: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (r, p) in &pairs { let s = r.subject.as_ref().unwrap(); by.entry(format!("{:12} {:20} {:6} {:7} {:14} {}", class(r), r.model, r.gpu, r.precision, r.source, s.options.stack)).or_default().push(p / r.step_time_s.unwrap() - 1.0); }
        for (kk, v) in by { println!("   {kk:60} n {:3} bias {:6.1} mape {:6.1}", v.len(), 100.0 * v.iter().sum::<f64>() / v.len() as f64, 100.0 * v.iter().map(|e| e.abs()).sum::<f64>() / v.len() as f64); }
    }
    if args.iter().any(|a| a == "ar") {
        let mut by: BTreeMap<(u32, u32, u32), Vec<f64>> = BTreeMap::new();
        for (r, p) in &pairs { if r.source != "vtrain-single" { continue; } let s = r.subject.as_ref().unwrap(); let l = &s.layout; if l.tp() < 2 || l.pp() > 1 { continue; }
            let b = Breakdown::of(&s.inputs(), &k);
            let count = f64::from(s.batch.ga()) * f64::from(s.architecture.layers) * 2.0 * 3.0;
            let ar = (r.step_time_s.unwrap() - (p - b.tensor_parallel)) / count;
            by.entry((l.tp(), s.architecture.hidden, s.batch.mbs())).or_default().push(ar * 1e6); let _ = l.dp(); }
        for ((t, h, m), v) in by { println!("tp {t} h {h} mbs {m} MB {} n {} implied us {:.0} (min {:.0} max {:.0})", 2 * m * h / 1024, v.len(), v.iter().sum::<f64>() / v.len() as f64, v.iter().copied().fold(f64::MAX, f64::min), v.iter().copied().fold(0.0, f64::max)); }
    }
    if mode == "cv" {
        let folds: Vec<(&str, Box<dyn Fn(&Measurement) -> String + Sync>)> = vec![
            ("by model", Box::new(|r: &Measurement| { let s = r.subject.as_ref().unwrap(); if r.model == "gpt-custom" || r.model == "bloom-proxy" { s.shape.clone() } else { r.model.clone() } })),
            ("by mapping (12 folds)", Box::new(|r: &Measurement| { let m = &r.subject.as_ref().unwrap().mapping; let mut h: u32 = 2166136261; for b in m.bytes() { h = (h ^ u32::from(b)).wrapping_mul(16777619); } format!("{}", (h >> 8) % 12) })),
        ];
        for (title, key) in folds {
            let keys: BTreeSet<String> = rows.iter().map(|r| key(r)).collect();
            let keys: Vec<String> = keys.into_iter().collect();
            let next = std::sync::atomic::AtomicUsize::new(0);
            let out = std::sync::Mutex::new(Vec::new());
            std::thread::scope(|sc| { for _ in 0..2 { sc.spawn(|| loop {
                let i = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                if i >= keys.len() { break; }
                let train: Vec<Point<'_>> = pts.iter().filter(|p| key(p.row) != keys[i]).copied().collect();
                let v = fit(&all, &values, &train, noise, 12);
                let k = Constants::verbatim(&all, &v);
                let mut o = out.lock().unwrap();
                for r in rows.iter().filter(|r| key(r) == keys[i]) { o.push((*r, predict(r, &k).unwrap())); }
            }); } });
            let pairs = out.into_inner().unwrap();
            report(&format!("held out {title}, {} folds", keys.len()), &pairs);
            if title == "by model" {
                let mut by: BTreeMap<String, Vec<f64>> = BTreeMap::new();
                for (r, p) in &pairs { by.entry(format!("{} {} {} {}", class(r), r.model, r.gpu, r.precision)).or_default().push(p / r.step_time_s.unwrap() - 1.0); }
                for (kk, v) in by { if kk.starts_with("nv") { println!("   {kk:60} n {:3} bias {:6.1} mape {:6.1}", v.len(), 100.0 * v.iter().sum::<f64>() / v.len() as f64, 100.0 * v.iter().map(|e| e.abs()).sum::<f64>() / v.len() as f64); } }
            }
        }
        println!("{:?}", t.elapsed());
    }
}
