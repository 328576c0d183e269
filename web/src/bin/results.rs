//! The program of the pages that show what ran.

fn main() {
    trainplan_web::results();
}
