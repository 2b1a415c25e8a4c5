"""Vocabulary of the tiny thinker: common words and punctuation marks, as whole tokens."""

from dataclasses import dataclass

_ENGLISH = """
the of and to in a is that it was for on are with as his they at be this have from or one had by
word but not what all were we when your can said there use an each which she do how their if will
up other about out many then them these so some her would make like him into time has look two
more write go see number no way could people my than first water been call who its now find long
down day did get come made may part over new sound take only little work know place year live me
back give most very after thing our just name good sentence man think say great where help through
much before line right too mean old any same tell boy follow came want show also around form three
small set put end does another well large must big even such because turn here why ask went men
read need land different home us move try kind hand picture again change off play spell air away
animal house point page letter mother answer found study still learn should world high every near
add food between own below country plant last school father keep tree never start city earth eye
light thought head under story saw left few while along might close something seem next hard open
example begin life always those both paper together got group often run important until children
side feet car mile night walk white sea began grow took river four carry state once book hear stop
without second later miss idea enough eat face watch far really almost let above girl mountain cut
young talk soon list song being leave family music color friend morning voice you assistant helpful
system speech generate following description text input user image audio video
"""

_CHINESE = """
我们 你们 他们 自己 什么 没有 时间 知道 可以 现在 今天 明天 昨天 时候 因为 所以 如果 但是 还是 已经
一个 这个 那个 这样 那样 怎么 大家 先生 老师 学生 朋友 孩子 父亲 母亲 家里 学校 工作 学习 生活 问题
世界 国家 城市 地方 东西 事情 开始 结束 觉得 认为 希望 需要 喜欢 看见 听到 说话 告诉 回来 出去 起来
天气 早上 晚上 中午 春天 夏天 秋天 冬天 太阳 月亮 星星 山上 河边 海水 花园 树林 小鸟 音乐 声音 故事
友好 助手 高兴 美丽 重要 简单 容易 真正 一起 非常 十分 特别 当然 也许 可能 应该 慢慢 一直 常常 终于
早饭 晚饭 苹果 牛奶 面包 米饭 茶叶 桌子 椅子 房间 窗户 大门 汽车 火车 飞机 公园 商店 医院 银行 电影
电话 电脑 照片 图画 颜色 红色 白色 蓝色 绿色 黑色 春风 大雨 白雪 云朵 天空 土地 森林 草地 沙滩 小船
身体 眼睛 耳朵 头发 双手 心里 名字 年纪 哥哥 姐姐 弟弟 妹妹 爷爷 奶奶 叔叔 邻居 客人 医生 工人 农民
语言 文字 句子 意思 办法 机会 计划 消息 新闻 历史 科学 数学 经济 社会 文化 艺术 体育 比赛 游戏 节日
明白 记得 忘记 相信 决定 准备 参加 帮助 感谢 认识 介绍 欢迎 等待 寻找 发现 变成 成为 离开 到达 经过
安静 干净 热闹 温暖 凉快 聪明 努力 认真 健康 快乐 幸福 年轻 有趣 有名 方便 便宜 清楚 新鲜 安全 平常
的 是 在 了 不 有 我 你 他 她 它 这 那 和 人 来 去 上 下 大 小 多 少
好 看 说 想 要 会 能 就 都 很 也 还 又
"""


@dataclass(frozen=True)
class Language:
    """Strings of a language: words as they follow each other, full stops and pauses."""

    words: tuple[str, ...]
    stops: tuple[str, ...]
    pauses: tuple[str, ...]

    @property
    def marks(self) -> tuple[str, ...]:
        """Return all punctuation."""
        return self.stops + self.pauses


ENGLISH = Language(tuple(f" {word}" for word in _ENGLISH.split()), (".", "?", "!"), (",",))
CHINESE = Language(tuple(_CHINESE.split()), ("。", "？", "！"), ("，", "、"))
LANGUAGES = (ENGLISH, CHINESE)
