//! The program of the Results, Compare, Run and History pages.

fn main() {
    trainplan_web::results();
}
