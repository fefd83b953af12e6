<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
    <context>
        <name>Hearth</name>
        <message>
            <location filename="app/chat/blocks/inline_error.py" />
            <source>Copy the details</source>
            <translation>复制详情</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/inline_error.py" />
            <source>Details</source>
            <translation>详情</translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/blocks/text_blocks.py" />
            <source>{count} more characters</source>
            <translation>
                <numerusform>还有 {count} 个字符</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/chat/blocks/text_blocks.py" />
            <source>You wrote</source>
            <translation>你写道</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>{count} tokens</source>
            <translation>{count} 个 token</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>{seconds} s</source>
            <translation>{seconds} 秒</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>Hearth was closed before this reply ended</source>
            <translation>回复结束前 Hearth 被关闭</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>written by you</source>
            <translation>由你写的</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>{speed} tok/s</source>
            <translation>{speed} token/秒</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>first token {time}</source>
            <translation>首个 token {time}</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>finished at a stop text</source>
            <translation>遇到停止文本而结束</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>reached the limit</source>
            <translation>达到上限</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>context is full</source>
            <translation>上下文已满</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>stopped by you</source>
            <translation>被你停止</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>not finished</source>
            <translation>未完成</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>finished</source>
            <translation>已完成</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>The engine stopped and was restarted.</source>
            <translation>引擎停止后已重新启动。</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>This does not fit into memory</source>
            <translation>内存放不下</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>This message cannot be answered</source>
            <translation>这条消息无法回答</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>This chat is too long to send</source>
            <translation>这个对话太长，无法发送</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>The model cannot read this chat</source>
            <translation>模型无法读取这个对话</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>Your message was not saved</source>
            <translation>你的消息没有保存</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>The disk is full</source>
            <translation>磁盘已满</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>The engine is not there</source>
            <translation>引擎不在</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>The engine was started again</source>
            <translation>引擎已重新启动</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>There is no reply</source>
            <translation>没有回复</translation>
        </message>
        <message>
            <location filename="app/chat/blocks/words.py" />
            <source>Your chat is intact.</source>
            <translation>你的对话完好无损。</translation>
        </message>
        <message>
            <location filename="app/chat/composer.py" />
            <source>sends when this reply ends</source>
            <translation>这条回复结束后发送</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>Earlier messages no longer fit and are not seen by the model</source>
            <translation>较早的消息放不下了，模型看不到</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>{what}. {why}</source>
            <translation>{what}。{why}</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>resumed {count} of {total} tokens from {place}, {size} in {time}</source>
            <translation>从{place}恢复 {total} 个 token 中的 {count} 个，{size}，用时 {time}</translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>Reading {count} tokens, {percent} %</source>
            <translation>
                <numerusform>正在读取 {count} 个 token，{percent} %</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>too short to keep</source>
            <translation>太短，不保存</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>nothing was kept</source>
            <translation>没有保存的内容</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>begins differently</source>
            <translation>开头不同</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>made room for others</source>
            <translation>为其他对话让出了空间</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>no room to resume</source>
            <translation>没有空间恢复</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>message edited</source>
            <translation>消息已修改</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>another model</source>
            <translation>换了模型</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>kept file damaged</source>
            <translation>保存的文件已损坏</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>another chat template</source>
            <translation>换了对话模板</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>rewritten by the template</source>
            <translation>被模板改写</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>the oldest left out</source>
            <translation>略去了最早的部分</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>read {count}: {why}</source>
            <translation>读取 {count}：{why}</translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>{count} tokens were read. {why}</source>
            <translation>
                <numerusform>读取了 {count} 个 token。{why}</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>read {count} again: {why}</source>
            <translation>重新读取 {count}：{why}</translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>{count} tokens were read again. {why}</source>
            <translation>
                <numerusform>重新读取了 {count} 个 token。{why}</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>disk</source>
            <translation>磁盘</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>resumed {count} of {total} tokens</source>
            <translation>恢复了 {total} 个 token 中的 {count} 个</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>resumed {count} of {total} tokens from {place}</source>
            <translation>从{place}恢复了 {total} 个 token 中的 {count} 个</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>Taking up the chat, {percent} % of {size}</source>
            <translation>正在接续对话，{size} 的 {percent} %</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>the GPU</source>
            <translation>GPU</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>memory</source>
            <translation>内存</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>RAM</source>
            <translation>内存</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>Waiting: the model is loading</source>
            <translation>等待：正在加载模型</translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>Waiting: next in line, %n chats answer at once</source>
            <translation>
                <numerusform>等待：下一个轮到，同时有 %n 个对话在回答</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/kept/words.py" />
            <source>Waiting: number {number} in line, %n chats answer at once</source>
            <translation>
                <numerusform>等待：排在第 {number} 位，同时有 %n 个对话在回答</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>Waiting for {needed} of memory, {free} are free</source>
            <translation>等待 {needed} 内存，空闲 {free}</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>Waiting: next in line, another message is being read</source>
            <translation>等待：下一个轮到，正在读取另一条消息</translation>
        </message>
        <message>
            <location filename="app/chat/kept/words.py" />
            <source>Waiting: number {number} in line, another message is being read</source>
            <translation>等待：排在第 {number} 位，正在读取另一条消息</translation>
        </message>
        <message>
            <location filename="app/chat/options/cost.py" />
            <source>about {count} tokens</source>
            <translation>约 {count} 个 token</translation>
        </message>
        <message>
            <location filename="app/chat/options/cost.py" />
            <source>too long: {count} fit into the context</source>
            <translation>太长：上下文能容纳 {count} 个</translation>
        </message>
        <message>
            <location filename="app/chat/options/cost.py" />
            <source>{share} % of context</source>
            <translation>占上下文的 {share} %</translation>
        </message>
        <message>
            <location filename="app/chat/options/cost.py" />
            <source>first token in about {seconds} s</source>
            <translation>约 {seconds} 秒后出现首个 token</translation>
        </message>
        <message>
            <location filename="app/chat/options/cost.py" />
            <source>the oldest messages are left out</source>
            <translation>最早的消息会被略去</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Temperature</source>
            <translation>温度</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Top-k</source>
            <translation>Top-k</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Top-p</source>
            <translation>Top-p</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Min-p</source>
            <translation>Min-p</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Repetition penalty</source>
            <translation>重复惩罚</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Seed</source>
            <translation>种子</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Most tokens of a reply</source>
            <translation>回复最多 token 数</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Options of this chat</source>
            <translation>这个对话的选项</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>Preset</source>
            <translation>预设</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>As the model has it. A change is read again once.</source>
            <translation>按模型的设定。修改后会重新读取一次。</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>System prompt</source>
            <translation>系统提示</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>as the model recommends</source>
            <translation>按模型的建议</translation>
        </message>
        <message>
            <location filename="app/chat/options/panel.py" />
            <source>None</source>
            <translation>无</translation>
        </message>
        <message>
            <location filename="app/chat/options/think_button.py" />
            <source>Think: auto</source>
            <translation>思考：自动</translation>
        </message>
        <message>
            <location filename="app/chat/options/think_button.py" />
            <source>Think: on</source>
            <translation>思考：开</translation>
        </message>
        <message>
            <location filename="app/chat/options/think_button.py" />
            <source>Think: off</source>
            <translation>思考：关</translation>
        </message>
        <message>
            <location filename="app/chat/options/think_button.py" />
            <source>Whether the model thinks before it replies</source>
            <translation>模型回复前是否思考</translation>
        </message>
        <message>
            <location filename="app/chat/page.py" />
            <source>Message {name}</source>
            <translation>给 {name} 发消息</translation>
        </message>
        <message>
            <location filename="app/chat/page.py" />
            <source>replaces your last message</source>
            <translation>替换你的上一条消息</translation>
        </message>
        <message>
            <location filename="app/chat/page.py" />
            <source>Write a message</source>
            <translation>写消息</translation>
        </message>
        <message>
            <location filename="app/chat/page.py" />
            <source>makes another version of this reply</source>
            <translation>生成这条回复的另一个版本</translation>
        </message>
        <message>
            <location filename="app/chat/page.py" />
            <source>makes another version of this message</source>
            <translation>生成这条消息的另一个版本</translation>
        </message>
        <message>
            <location filename="app/chat/page.py" />
            <source>sends when the model is ready</source>
            <translation>模型就绪后发送</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/box_widgets.py" />
            <source>Copy the code</source>
            <translation>复制代码</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/box_widgets.py" />
            <source>Scroll to the side</source>
            <translation>横向滚动</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/box_widgets.py" />
            <source>Copied</source>
            <translation>已复制</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/link_dialog.py" />
            <source>Link</source>
            <translation>链接</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/link_dialog.py" />
            <source>This link leads to</source>
            <translation>这个链接指向</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/link_dialog.py" />
            <source>Address</source>
            <translation>地址</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/link_dialog.py" />
            <source>Close</source>
            <translation>关闭</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/link_dialog.py" />
            <source>Copy</source>
            <translation>复制</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/link_dialog.py" />
            <source>Open in the browser</source>
            <translation>在浏览器中打开</translation>
        </message>
        <message>
            <location filename="app/chat/rendered/reply.py" />
            <source>Reply</source>
            <translation>回复</translation>
        </message>
        <message>
            <location filename="app/chat/session_view.py" />
            <source>Answer again</source>
            <translation>重新回答</translation>
        </message>
        <message>
            <location filename="app/chat/session_view.py" />
            <source>Edit the message</source>
            <translation>编辑消息</translation>
        </message>
        <message>
            <location filename="app/chat/session_view.py" />
            <source>Continue</source>
            <translation>继续</translation>
        </message>
        <message>
            <location filename="app/chat/transcript.py" />
            <source>Conversation</source>
            <translation>对话内容</translation>
        </message>
        <message>
            <location filename="app/chat/transcript.py" />
            <source>Copy the selection</source>
            <translation>复制所选内容</translation>
        </message>
        <message>
            <location filename="app/chat/transcript.py" />
            <source>Select all</source>
            <translation>全选</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>{what} ({keys})</source>
            <translation>{what}（{keys}）</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Copy the message</source>
            <translation>复制消息</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Edit</source>
            <translation>编辑</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Branch into a new chat</source>
            <translation>分支到新对话</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Delete</source>
            <translation>删除</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Copy as Markdown</source>
            <translation>复制为 Markdown</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Copy as plain text</source>
            <translation>复制为纯文本</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Information</source>
            <translation>信息</translation>
        </message>
        <message>
            <location filename="app/chat/turns/deeds.py" />
            <source>Copy the thoughts</source>
            <translation>复制思考内容</translation>
        </message>
        <message>
            <location filename="app/chat/turns/desk.py" />
            <source>{title} (branch)</source>
            <translation>{title}（分支）</translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/turns/info.py" />
            <source>%n messages</source>
            <translation>
                <numerusform>%n 条消息</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>{name}: {value}</source>
            <translation>{name}：{value}</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Model</source>
            <translation>模型</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Digest</source>
            <translation>摘要</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Chat template</source>
            <translation>对话模板</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Read</source>
            <translation>已读取</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Written</source>
            <translation>已写出</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Of it thought</source>
            <translation>其中思考</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Begun</source>
            <translation>开始于</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Waited</source>
            <translation>等待</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Reading</source>
            <translation>读取</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>First token after</source>
            <translation>首个 token 用时</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Writing</source>
            <translation>写出</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Presence penalty</source>
            <translation>存在惩罚</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Frequency penalty</source>
            <translation>频率惩罚</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Longest reply</source>
            <translation>最长回复</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Stop texts</source>
            <translation>停止文本</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Computed on</source>
            <translation>计算设备</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Left out of the context</source>
            <translation>上下文中略去</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Resumed</source>
            <translation>已恢复</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>Note</source>
            <translation>备注</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>GPU</source>
            <translation>GPU</translation>
        </message>
        <message>
            <location filename="app/chat/turns/info.py" />
            <source>processor</source>
            <translation>处理器</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/announcer.py" />
            <source>The reply is finished</source>
            <translation>回复已完成</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/info_dialog.py" />
            <source>About this reply</source>
            <translation>关于这条回复</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/row.py" />
            <source>More</source>
            <translation>更多</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/thinking.py" />
            <source>Thoughts</source>
            <translation>思考内容</translation>
        </message>
        <message numerus="yes">
            <location filename="app/chat/turns/parts/thinking_words.py" />
            <source>Thought for {time} · %n tokens</source>
            <translation>
                <numerusform>思考了 {time} · %n 个 token</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/thinking_words.py" />
            <source>{minutes} min {seconds} s</source>
            <translation>{minutes} 分 {seconds} 秒</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/thinking_words.py" />
            <source>Thinking, {time}</source>
            <translation>正在思考，{time}</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/thinking_words.py" />
            <source>Thinking</source>
            <translation>正在思考</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/turn_blocks.py" />
            <source>Your message</source>
            <translation>你的消息</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/turn_blocks.py" />
            <source>Not finished: {why}</source>
            <translation>未完成：{why}</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/turn_blocks.py" />
            <source>From here on: {name}</source>
            <translation>从这里起：{name}</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/versions.py" />
            <source>Version {number} of {count}</source>
            <translation>第 {number} 版，共 {count} 版</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/versions.py" />
            <source>Earlier version</source>
            <translation>上一个版本</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/versions.py" />
            <source>Later version</source>
            <translation>下一个版本</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/waiting.py" />
            <source>Waiting for {name}</source>
            <translation>等待 {name}</translation>
        </message>
        <message>
            <location filename="app/chat/turns/parts/waiting.py" />
            <source>Waiting for a model</source>
            <translation>等待模型</translation>
        </message>
        <message>
            <location filename="app/composition.py" />
            <source>Something in the window went wrong. Your chats are safe.</source>
            <translation>窗口出了问题。你的对话是安全的。</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>New chat</source>
            <translation>新对话</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Stop the reply</source>
            <translation>停止回复</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Delete the chat</source>
            <translation>删除对话</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Undo</source>
            <translation>撤销</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Close the window</source>
            <translation>关闭窗口</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Toggle the sidebar</source>
            <translation>显示或隐藏侧边栏</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Search chats</source>
            <translation>搜索对话</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Choose a model</source>
            <translation>选择模型</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Show the chat</source>
            <translation>显示对话</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Show the memory</source>
            <translation>显示内存</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Settings</source>
            <translation>设置</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Larger text</source>
            <translation>放大文字</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Smaller text</source>
            <translation>缩小文字</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Text as the system has it</source>
            <translation>文字大小随系统</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Keyboard shortcuts</source>
            <translation>键盘快捷键</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Copy the reply</source>
            <translation>复制回复</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Copy the last code block</source>
            <translation>复制最后一个代码块</translation>
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Continue the reply</source>
            <translation>继续回复</translation>
        </message>
        <message>
            <location filename="app/connections/chats.py" />
            <source>Chat moved to trash</source>
            <translation>对话已移到回收站</translation>
        </message>
        <message>
            <location filename="app/connections/chats.py" />
            <source>Message moved to trash</source>
            <translation>消息已移到回收站</translation>
        </message>
        <message>
            <location filename="app/connections/chats.py" />
            <source>Reply moved to trash</source>
            <translation>回复已移到回收站</translation>
        </message>
        <message>
            <location filename="app/connections/chats.py" />
            <source>The engine stopped and was started again; your chat is intact</source>
            <translation>引擎停止后已重新启动；你的对话完好无损</translation>
        </message>
        <message>
            <location filename="app/connections/pages.py" />
            <source>Show report</source>
            <translation>显示报告</translation>
        </message>
        <message>
            <location filename="app/connections/pages.py" />
            <source>The engine has not started yet.</source>
            <translation>引擎还没有启动。</translation>
        </message>
        <message>
            <location filename="app/connections/pages.py" />
            <source>Please note</source>
            <translation>请注意</translation>
        </message>
        <message numerus="yes">
            <location filename="app/connections/trash.py" />
            <source>%n chats in the trash</source>
            <translation>
                <numerusform>回收站中的 %n 个对话</numerusform>
            </translation>
        </message>
        <message>
            <location filename="app/connections/trash.py" />
            <source>Delete for good?</source>
            <translation>永久删除？</translation>
        </message>
        <message>
            <location filename="app/connections/trash.py" />
            <source>{what}: the texts, and what is kept of them, cannot be brought back.</source>
            <translation>{what}：文字及保存的内容将无法找回。</translation>
        </message>
        <message>
            <location filename="app/connections/trash.py" />
            <source>Delete for good</source>
            <translation>永久删除</translation>
        </message>
        <message>
            <location filename="app/library/choice.py" />
            <source>Choose a model file</source>
            <translation>选择模型文件</translation>
        </message>
        <message>
            <location filename="app/library/choice.py" />
            <source>Models (*.gguf *.safetensors)</source>
            <translation>模型 (*.gguf *.safetensors)</translation>
        </message>
        <message>
            <location filename="app/memory/view/page.py" />
            <source>Memory</source>
            <translation>内存</translation>
        </message>
        <message>
            <location filename="app/memory/view/page.py" />
            <source>Unload the model</source>
            <translation>卸载模型</translation>
        </message>
        <message>
            <location filename="app/memory/view/page.py" />
            <source>Gives its memory back; chats stay</source>
            <translation>释放它占用的内存；对话保留</translation>
        </message>
        <message>
            <location filename="app/pages/head.py" />
            <source>Show the sidebar (Ctrl+B)</source>
            <translation>显示侧边栏 (Ctrl+B)</translation>
        </message>
        <message>
            <location filename="app/pages/head.py" />
            <source>New chat (Ctrl+N)</source>
            <translation>新对话 (Ctrl+N)</translation>
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Blue</source>
            <translation>蓝色</translation>
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Green</source>
            <translation>绿色</translation>
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Violet</source>
            <translation>紫色</translation>
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Berry</source>
            <translation>莓红</translation>
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Slate</source>
            <translation>石板灰</translation>
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Ember</source>
            <translation>炉火</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>automatic</source>
            <translation>自动</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Appearance</source>
            <translation>外观</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Chats</source>
            <translation>对话</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Models</source>
            <translation>模型</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Privacy and files</source>
            <translation>隐私与文件</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Help</source>
            <translation>帮助</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Theme</source>
            <translation>主题</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Light, dark, or as the system is</source>
            <translation>浅色、深色或随系统</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Accent</source>
            <translation>强调色</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>The colour of what you can do</source>
            <translation>可操作之处的颜色</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Size of text</source>
            <translation>文字大小</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Of everything in the window; also Ctrl and + or -</source>
            <translation>窗口中的所有文字；也可按 Ctrl 和 + 或 -</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Chats as wide as the window</source>
            <translation>对话与窗口同宽</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Otherwise a column that is good to read</source>
            <translation>否则为便于阅读的一栏</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Language</source>
            <translation>语言</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Of the window; replies are in the language that you write in</source>
            <translation>窗口的语言；回复使用你书写的语言</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Send with</source>
            <translation>发送键</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>The other one, or Shift+Enter, begins a new line</source>
            <translation>另一个键或 Shift+Enter 换行</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Title chats by themselves</source>
            <translation>自动为对话命名</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>The model titles a chat after its first reply, while nothing else waits</source>
            <translation>首次回复后，在没有其他等待时由模型命名</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Everything can be done by keyboard; also Ctrl+/</source>
            <translation>一切都可用键盘完成；也可按 Ctrl+/</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Show</source>
            <translation>显示</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Model at start</source>
            <translation>启动时的模型</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Name or path of the one that is loaded when Hearth opens</source>
            <translation>打开 Hearth 时加载的模型的名称或路径</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Folders with models</source>
            <translation>模型文件夹</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Looked through besides Hearth's own; nothing is copied or changed</source>
            <translation>除 Hearth 自己的文件夹外也会查找；不复制也不更改</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Disk for kept chats</source>
            <translation>保存对话的磁盘空间</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>So that old chats go on at once; 0 keeps none. Texts of chats are not in it</source>
            <translation>使旧对话立即继续；0 表示不保存。不含对话文字</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Longer context in 8 bits</source>
            <translation>用 8 位获得更长上下文</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Where memory is short; replies may differ slightly</source>
            <translation>内存不足时使用；回复可能略有不同</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Where your chats are</source>
            <translation>你的对话在哪里</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>On this computer only. Hearth sends nothing of them anywhere and counts nothing</source>
            <translation>只在这台电脑上。Hearth 不发送也不统计任何内容</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Open folder</source>
            <translation>打开文件夹</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Check this computer</source>
            <translation>检查这台电脑</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>What Hearth found: processor, GPU, memory, disks</source>
            <translation>Hearth 发现的：处理器、GPU、内存、磁盘</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Check</source>
            <translation>检查</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Log</source>
            <translation>日志</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>What the window and the engine wrote</source>
            <translation>窗口和引擎写下的内容</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>About Hearth</source>
            <translation>关于 Hearth</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Version, and the licences of what it is made with</source>
            <translation>版本以及所用组件的许可证</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>the one used last</source>
            <translation>上次使用的模型</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>As the system</source>
            <translation>随系统</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Light</source>
            <translation>浅色</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Dark</source>
            <translation>深色</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Enter</source>
            <translation>Enter</translation>
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Ctrl+Enter</source>
            <translation>Ctrl+Enter</translation>
        </message>
        <message>
            <location filename="app/pages/settings/folders.py" />
            <source>Add folder…</source>
            <translation>添加文件夹…</translation>
        </message>
        <message>
            <location filename="app/pages/settings/folders.py" />
            <source>Remove {folder}</source>
            <translation>移除 {folder}</translation>
        </message>
        <message>
            <location filename="app/pages/settings/folders.py" />
            <source>A folder with models</source>
            <translation>存放模型的文件夹</translation>
        </message>
        <message>
            <location filename="app/pages/settings/page.py" />
            <source>{verb}: {title}</source>
            <translation>{verb}：{title}</translation>
        </message>
        <message>
            <location filename="app/pages/settings/page.py" />
            <source>from the next start</source>
            <translation>下次启动时生效</translation>
        </message>
        <message>
            <location filename="app/pages/text/about_page.py" />
            <source>Hearth {version}</source>
            <translation>Hearth {version}</translation>
        </message>
        <message>
            <location filename="app/pages/text/about_page.py" />
            <source>A good assistant on your own computer. Apache License 2.0; parts of others below.</source>
            <translation>在你自己电脑上的好助手。Apache 许可证 2.0；其他组件见下。</translation>
        </message>
        <message>
            <location filename="app/pages/text/about_page.py" />
            <source>Licences</source>
            <translation>许可证</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Whose log</source>
            <translation>谁的日志</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>All</source>
            <translation>全部</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Warnings</source>
            <translation>警告</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Errors</source>
            <translation>错误</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Least level</source>
            <translation>最低级别</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Filter the log</source>
            <translation>筛选日志</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Read again</source>
            <translation>重新读取</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>{shown} of {all} lines</source>
            <translation>{all} 行中的 {shown} 行</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Window</source>
            <translation>窗口</translation>
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Engine</source>
            <translation>引擎</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Saved</source>
            <translation>已保存</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Report</source>
            <translation>报告</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Nothing is sent. Take out what you do not want to show, and copy it.</source>
            <translation>不会发送任何内容。删去你不想展示的部分，然后复制。</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Save the report</source>
            <translation>保存报告</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Not saved: {why}</source>
            <translation>未保存：{why}</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Save…</source>
            <translation>保存…</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_page.py" />
            <source>This computer</source>
            <translation>这台电脑</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_page.py" />
            <source>Your name and home folder are taken out.</source>
            <translation>你的姓名和主文件夹已被去除。</translation>
        </message>
        <message>
            <location filename="app/pages/text/report_page.py" />
            <source>Looking…</source>
            <translation>正在查看…</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Chats stay here for {days} days and are then deleted for good.</source>
            <translation>对话在这里保留 {days} 天，之后永久删除。</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Delete {title} for good</source>
            <translation>永久删除 {title}</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>until {day}</source>
            <translation>保留到 {day}</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Empty the trash</source>
            <translation>清空回收站</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Deletes all of them for good</source>
            <translation>永久删除其中的全部对话</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Trash</source>
            <translation>回收站</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Restore</source>
            <translation>恢复</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Restore {title}</source>
            <translation>恢复 {title}</translation>
        </message>
        <message>
            <location filename="app/pages/trash_page.py" />
            <source>Nothing is in the trash.</source>
            <translation>回收站是空的。</translation>
        </message>
        <message>
            <location filename="app/panels/chat_list.py" />
            <source>Answering</source>
            <translation>正在回答</translation>
        </message>
        <message>
            <location filename="app/panels/chat_list.py" />
            <source>Titles</source>
            <translation>标题</translation>
        </message>
        <message>
            <location filename="app/panels/chat_list.py" />
            <source>Nothing found</source>
            <translation>没有找到</translation>
        </message>
        <message>
            <location filename="app/panels/chat_search.py" />
            <source>Search</source>
            <translation>搜索</translation>
        </message>
        <message>
            <location filename="app/panels/chat_search.py" />
            <source>Search in titles and texts (Ctrl+K)</source>
            <translation>在标题和文字中搜索 (Ctrl+K)</translation>
        </message>
        <message>
            <location filename="app/panels/dates.py" />
            <source>Today</source>
            <translation>今天</translation>
        </message>
        <message>
            <location filename="app/panels/dates.py" />
            <source>Yesterday</source>
            <translation>昨天</translation>
        </message>
        <message>
            <location filename="app/panels/dates.py" />
            <source>Previous 7 days</source>
            <translation>过去 7 天</translation>
        </message>
        <message>
            <location filename="app/panels/dates.py" />
            <source>Pinned</source>
            <translation>已置顶</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>engine starting</source>
            <translation>引擎正在启动</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>loading</source>
            <translation>正在加载</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>not loaded</source>
            <translation>未加载</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>{used} of {limit}</source>
            <translation>{limit} 中已用 {used}</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>Give the memory back</source>
            <translation>释放内存</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>Options of this chat (Ctrl+Alt+P)</source>
            <translation>这个对话的选项 (Ctrl+Alt+P)</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>Loading the model</source>
            <translation>正在加载模型</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>Context in use</source>
            <translation>已用的上下文</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>No model</source>
            <translation>没有模型</translation>
        </message>
        <message>
            <location filename="app/panels/modelbar.py" />
            <source>loading {share} %</source>
            <translation>已加载 {share} %</translation>
        </message>
        <message>
            <location filename="app/panels/models/name_button.py" />
            <source>Choose a model (Ctrl+L)</source>
            <translation>选择模型 (Ctrl+L)</translation>
        </message>
        <message>
            <location filename="app/panels/models/picker.py" />
            <source>{name} · {size} GB</source>
            <translation>{name} · {size} GB</translation>
        </message>
        <message>
            <location filename="app/panels/models/picker.py" />
            <source>{name} · not there now</source>
            <translation>{name} · 现在不在</translation>
        </message>
        <message>
            <location filename="app/panels/models/picker.py" />
            <source>● {name} · {size} GB · loaded</source>
            <translation>● {name} · {size} GB · 已加载</translation>
        </message>
        <message>
            <location filename="app/panels/models/picker.py" />
            <source>Models on this computer</source>
            <translation>这台电脑上的模型</translation>
        </message>
        <message>
            <location filename="app/panels/models/picker.py" />
            <source>Search models</source>
            <translation>搜索模型</translation>
        </message>
        <message>
            <location filename="app/panels/sidebar.py" />
            <source>Hide the sidebar (Ctrl+B)</source>
            <translation>隐藏侧边栏 (Ctrl+B)</translation>
        </message>
        <message>
            <location filename="app/panels/sidebar.py" />
            <source>Unpin</source>
            <translation>取消置顶</translation>
        </message>
        <message>
            <location filename="app/panels/sidebar.py" />
            <source>Pin</source>
            <translation>置顶</translation>
        </message>
        <message>
            <location filename="app/panels/sidebar.py" />
            <source>Delete chat</source>
            <translation>删除对话</translation>
        </message>
        <message>
            <location filename="app/panels/sidebar.py" />
            <source>Rename</source>
            <translation>重命名</translation>
        </message>
        <message>
            <location filename="app/widgets/filter_field.py" />
            <source>Filter</source>
            <translation>筛选</translation>
        </message>
        <message>
            <location filename="app/widgets/message_field.py" />
            <source>Message</source>
            <translation>消息</translation>
        </message>
        <message>
            <location filename="app/widgets/send_button.py" />
            <source>Send (Enter)</source>
            <translation>发送 (Enter)</translation>
        </message>
        <message>
            <location filename="app/widgets/send_button.py" />
            <source>Stop the reply (Esc)</source>
            <translation>停止回复 (Esc)</translation>
        </message>
        <message>
            <location filename="app/widgets/send_button.py" />
            <source>Send (Ctrl+Enter)</source>
            <translation>发送 (Ctrl+Enter)</translation>
        </message>
    </context>
</TS>
